"""Batches of pixels that are on the device."""

import pytest
import torch

from matroot.train.data.augment import Normalise
from matroot.train.data.on_device import Augmentation, OnDevice, shrink
from matroot.train.data.order import evaluation_order, training_order
from matroot.train.data.split import InMemory

CPU = torch.device("cpu")
AUGMENTS = ("none", "crop-flip", "shift", "finegrained", "resized-crop-flip", "corner-crop-flip")
RAW = Normalise((0.0,) * 3, (1 / 255,) * 3, CPU)
"""Leaves pixels 0 ... 255 as they are, to rounding of 255 * (1 / 255) in float32."""


def split(count=40, side=16, frames=None):
    shape = (count, side, side, 3) if frames is None else (count, frames, side, side, 3)
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randint(1, 256, shape, generator=generator, dtype=torch.uint8)
    return InMemory(pixels, torch.arange(count))


def batches(
    data, augment="crop-flip", size=16, batch_size=8, rank=0, world=1, seed=0, channels_last=False, erasing=0.0
):
    order = training_order(len(data), batch_size, rank, world)
    return OnDevice(data, order, Augmentation(augment, size, erasing), RAW, CPU, seed, channels_last)


def stacked(epoch):
    images, labels = zip(*epoch, strict=True)
    return torch.cat(images), torch.cat(labels)


@pytest.mark.parametrize("augment", AUGMENTS)
def test_an_epoch_depends_on_seed_and_number_alone(augment):
    first = batches(split(), augment)
    images, labels = stacked(first.epoch(3))
    again, _ = stacked(batches(split(), augment).epoch(3))
    next(first.epoch(5))
    after_others, _ = stacked(first.epoch(3))
    assert torch.equal(images, again)
    assert torch.equal(images, after_others)
    for other in (first.epoch(4), batches(split(), augment, seed=1).epoch(3)):
        other_images, other_labels = stacked(other)
        assert not torch.equal(labels, other_labels)
        assert not torch.equal(images, other_images)


@pytest.mark.parametrize("augment", AUGMENTS)
def test_processes_together_have_the_batches_of_one(augment):
    alone = batches(split(), augment, erasing=0.5).epoch(1)
    ranks = [batches(split(), augment, rank=rank, world=4, erasing=0.5).epoch(1) for rank in range(4)]
    for (images, labels), *parts in zip(alone, *ranks, strict=True):
        assert torch.equal(images, torch.cat([part[0] for part in parts]))
        assert torch.equal(labels, torch.cat([part[1] for part in parts]))


def test_a_crop_is_a_slice_of_the_padded_image():
    data = split()
    padded = torch.nn.functional.pad(data.pixels, (0, 0, 2, 2, 2, 2)).movedim(-1, 1).float()
    slices = {
        (top, left, mirrored): (window.flip(-1) if mirrored else window)
        for top in range(5)
        for left in range(5)
        for mirrored in (False, True)
        for window in [padded[:, :, top : top + 16, left : left + 16]]
    }
    seen = []
    for number in range(20):
        images, labels = stacked(batches(data).epoch(number))
        for image, label in zip(images.round(), labels.tolist(), strict=True):
            seen += [key for key, window in slices.items() if torch.equal(window[label], image)]
    assert len(seen) == 20 * 40
    assert {key[:2] for key in seen} == {(top, left) for top in range(5) for left in range(5)}
    # 800 draws: four standard deviations.
    assert sum(key[2] for key in seen) / len(seen) == pytest.approx(0.5, abs=0.07)


def test_shifts_do_not_mirror():
    """Columns of increasing brightness stay increasing."""
    pixels = torch.arange(1, 17, dtype=torch.uint8).view(1, 1, 16, 1).expand(8, 16, 16, 3).contiguous()
    images, _ = stacked(batches(InMemory(pixels, torch.arange(8)), "shift").epoch(0))
    middle = images[:, :, 4:12, 2:14]
    assert (middle.diff(dim=-1) > 0).all()
    assert len({image.sum().item() for image in images}) > 1


def test_larger_images_are_cropped_and_not_padded():
    images, _ = stacked(batches(split(side=18), size=16).epoch(0))
    assert images.shape[-2:] == (16, 16)
    assert images.round().min() >= 1


def test_smaller_images_are_resized_after_the_crop():
    images, _ = stacked(batches(split(side=8), size=16).epoch(0))
    assert images.shape == (40, 3, 16, 16)


@pytest.mark.parametrize("augment", AUGMENTS)
def test_all_frames_of_a_clip_are_changed_alike(augment):
    data = split(count=8, frames=3)
    same = InMemory(data.pixels[:, :1].expand(-1, 3, -1, -1, -1), data.labels)
    images, _ = stacked(batches(same, augment, erasing=0.5).epoch(0))
    assert images.shape == (8, 3, 3, 16, 16)
    assert torch.equal(images[:, 0], images[:, 1])
    assert torch.equal(images[:, 0], images[:, 2])


def test_frames_keep_their_order():
    data = split(count=8, frames=3)
    images, labels = stacked(batches(data, "none").epoch(0))
    torch.testing.assert_close(images.round(), data.pixels[labels].movedim(-1, 2).float(), rtol=0, atol=0)


@pytest.mark.parametrize("augment", ["crop-flip", "corner-crop-flip"])
@pytest.mark.parametrize("frames", [None, 3])
def test_memory_format_changes_no_value(augment, frames):
    data = split(count=8, frames=frames)
    plain, _ = stacked(batches(data, augment, erasing=0.5).epoch(0))
    last, _ = next(batches(data, augment, erasing=0.5, channels_last=True).epoch(0))
    assert last.flatten(0, -4).is_contiguous(memory_format=torch.channels_last)
    # The interpolation of torch is written for each format and rounds differently.
    torch.testing.assert_close(last, plain, rtol=0, atol=1e-3)


def test_evaluation_takes_the_middle_in_order():
    data = split(side=18)
    test = OnDevice(data, evaluation_order(40, 16), Augmentation("none", 16), RAW, CPU, 0)
    images, labels = stacked(test.epoch(0))
    assert len(test) == 3
    assert labels.tolist() == list(range(40))
    assert torch.equal(images.round(), data.pixels[:, 1:17, 1:17].movedim(-1, 1).float())


def test_images_are_shrunk_once_to_what_crops_need():
    data = split(count=4, side=64, frames=2)
    assert shrink(data, 56) is data
    small = shrink(data, 28)
    assert small.pixels.shape == (4, 2, 32, 32, 3)
    # Smaller by a factor of two with antialiasing: means are kept, to rounding of the average to whole grey levels.
    means = [pixels.pixels.float().mean(dim=(2, 3)) for pixels in (data, small)]
    torch.testing.assert_close(*means, rtol=0, atol=1.5)
