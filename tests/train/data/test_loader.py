"""Batches read by worker processes."""

import random

import numpy as np
import pytest
import torch

from matroot.train.data import DataError, open_data

from .look_alikes import class_folders, clip_folder, recipe

CPU = torch.device("cpu")
RANDOM = {"augment": "resized-crop-flip", "rand_augment": "rand-m9-mstd0.5-inc1", "erasing": 0.5}

# Python warns where a process with threads is forked, which the DataLoader of torch does.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def images(root, number=1, workers=0, rank=0, world=1, **fields):
    data = open_data(recipe("folder", **{**RANDOM, **fields}), root, CPU, rank, world, workers)
    return list(data.train.epoch(number))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return class_folders(tmp_path_factory.mktemp("folder"))


def test_an_epoch_depends_on_seed_and_number_alone(folder):
    first, again = images(folder), images(folder)
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    elsewhere = images(folder)
    for one, two, three in zip(first, again, elsewhere, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[0], three[0])
        assert torch.equal(one[1], two[1])
    for other in (images(folder, number=2), images(folder, seed=1)):
        assert not torch.equal(first[0][0], other[0][0])


def test_workers_change_nothing(folder):
    data = open_data(recipe("folder", **RANDOM), folder, CPU, workers=2)
    next(data.train.epoch(7))  # of which the workers have read more
    for number in (1, 2, 1):
        for (ours, labels), (theirs, their_labels) in zip(
            data.train.epoch(number), images(folder, number), strict=True
        ):
            assert torch.equal(ours, theirs)
            assert torch.equal(labels, their_labels)


def test_processes_together_have_the_batches_of_one(folder):
    ranks = [images(folder, rank=rank, world=2) for rank in range(2)]
    for (whole, labels), *parts in zip(images(folder), *ranks, strict=True):
        assert torch.equal(whole, torch.cat([part[0] for part in parts]))
        assert torch.equal(labels, torch.cat([part[1] for part in parts]))


def test_a_set_smaller_than_a_batch_is_mixed_in_pairs(tmp_path):
    folder = class_folders(tmp_path, classes=3, images=3)
    ((whole, _),) = images(folder, batch_size=100)
    assert len(whole) % 2
    ((paired, _),) = images(folder, batch_size=100, mixup=0.8)
    assert len(paired) == len(whole) - 1


def test_global_generators_are_left_alone(folder):
    """A resumed run needs no state of them because nothing here draws from them."""
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    images(folder)
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("augment", ["none", "crop-flip", "shift", "finegrained", "corner-crop-flip"])
@pytest.mark.parametrize("side", [12, 18, 40])
def test_every_augmentation_gives_the_size_asked_for(tmp_path, augment, side):
    class_folders(tmp_path, images=2, side=side)
    (batch, labels), *_ = images(tmp_path, augment=augment, rand_augment=None)
    assert batch.shape == (4, 3, 16, 16)
    assert batch.isfinite().all()
    assert sorted(labels.tolist()) == [0, 0, 1, 1]


def test_evaluation_is_the_middle_without_chance(folder):
    data = open_data(recipe("folder", **RANDOM), folder, CPU, workers=0)
    first, second = list(data.test.epoch(1)), list(data.test.epoch(2))
    assert torch.cat([labels for _, labels in first]).tolist() == [0] * 4 + [1] * 4
    assert all(torch.equal(one[0], two[0]) for one, two in zip(first, second, strict=True))
    # All images of a class are equal, and nothing is erased or moved.
    together = torch.cat([batch for batch, _ in first])
    assert torch.equal(together[0], together[3])


def test_channels_last(folder):
    (plain, _), *_ = images(folder)
    (last, _), *_ = images(folder, channels_last=True)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(plain, last)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_named(tmp_path, workers):
    class_folders(tmp_path)
    broken = tmp_path / "train/class01/2.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(DataError) as failure:
        images(tmp_path, workers=workers)
    assert str(failure.value).startswith(f"{broken}: cannot be read as an image:")
    assert "Traceback" not in str(failure.value)


def test_a_file_that_vanished_is_named(tmp_path):
    class_folders(tmp_path)
    data = open_data(recipe("folder"), tmp_path, CPU, workers=0)
    (tmp_path / "val/class00/1.jpg").unlink()
    with pytest.raises(DataError, match=r"class00/1\.jpg: cannot be read: No such file"):
        list(data.test.epoch(1))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    root = tmp_path_factory.mktemp("clips")
    for split in ("train", "test"):
        for label in "ab":
            for clip in range(2):
                clip_folder(root / split / label / f"clip{clip}", frames=12)
    return root


def grey_levels(batch):
    """Numbers of the frames of look-alike clips (B, T)."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    levels = batch.mean(dim=(-1, -2)) * std + mean
    return (levels[..., 0] * 25.5).round().long()


def test_one_frame_of_every_segment(clips):
    data = open_data(recipe("frames", augment="corner-crop-flip", frames=4), clips, CPU, workers=0)
    middle = torch.cat([grey_levels(batch) for batch, _ in data.test.epoch(1)])
    assert middle.tolist() == [[1, 4, 7, 10]] * 4
    seen = set()
    for number in range(12):
        for batch, _ in data.train.epoch(number):
            assert batch.shape == (4, 4, 3, 16, 16)
            levels = grey_levels(batch)
            assert (levels // 3 == torch.arange(4)).all()
            seen |= set(levels.flatten().tolist())
    # A frame is missed by 48 clips with probability (2/3)^48 = 4e-9.
    assert seen == set(range(12))


def test_all_frames_of_a_clip_are_changed_alike(tmp_path):
    for split in ("train", "val"):
        class_folders(tmp_path / "images", test="val", images=1)
        for label in range(2):
            folder = tmp_path / split / f"class{label}" / "clip"
            folder.mkdir(parents=True)
            source = (tmp_path / f"images/train/class{label:02}/0.jpg").read_bytes()
            for frame in range(3):
                (folder / f"{frame}.jpg").write_bytes(source)
    fields = {**RANDOM, "augment": "corner-crop-flip", "frames": 3, "batch_size": 2}
    data = open_data(recipe("frames", **fields), tmp_path, CPU, workers=0)
    for number in range(5):
        for batch, _ in data.train.epoch(number):
            assert torch.equal(batch[:, 0], batch[:, 1])
            assert torch.equal(batch[:, 0], batch[:, 2])


def test_rand_augment_that_timm_does_not_know(folder):
    with pytest.raises(DataError, match="rand_augment 'rand-q9' is unknown to timm"):
        images(folder, rand_augment="rand-q9")


def test_rand_augment_at_its_largest_magnitude(folder):
    """timm posterises to 0 bits there."""
    for number in range(6):
        images(folder, number, rand_augment="rand-m10-n8-inc1")
