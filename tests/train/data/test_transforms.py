"""Augmentation of single examples: the geometry of the published recipes."""

import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from matroot.train.data.augment import Normalise
from matroot.train.data.on_device import Augmentation, OnDevice
from matroot.train.data.order import evaluation_order
from matroot.train.data.seeding import generator_for
from matroot.train.data.split import InMemory, Resize
from matroot.train.data.transforms import Evaluation, Training, rand_augment


def ramp(width, height):
    """Red is the column and green the row, as a share of 200."""
    columns, rows = np.meshgrid(np.linspace(0, 200, width), np.linspace(0, 200, height))
    return Image.fromarray(np.stack([columns, rows, columns], axis=-1).astype(np.uint8))


def seen(image):
    """First and last column and row of the source that are seen, as shares of 200."""
    red, green = image[0, 0].float(), image[0, 1].float()
    return [red[:, 0].mean(), red[:, -1].mean(), green[0].mean(), green[-1].mean()]


@pytest.mark.parametrize(("before", "width", "expected"), [
    # 256 for 224: an eighth of the short side is cut off; of 2:1 the middle half of what remains.
    (None, 80, (200 * (0.5 - 7 / 32), 200 * (0.5 + 7 / 32), 200 / 16, 200 * 15 / 16)),
    (Resize(), 80, (50, 150, 0, 200)),
    (Resize(ratio=2), 80, (75, 125, 50, 150)),
    (Resize(square=True), 80, (0, 200, 0, 200)),
])  # fmt: skip
def test_what_evaluation_sees(before, width, expected):
    image = Evaluation(28, before)([ramp(width, 40)], generator_for(0))
    assert image.shape == (1, 3, 28, 28)
    assert image.dtype == torch.uint8
    # A pixel of the result is 200 / 28 = 7 levels high.
    assert seen(image) == pytest.approx(expected, abs=8)


def test_fine_grained_crops_move_along_the_long_side_alone():
    transform = Training("finegrained", 28, Resize(), None)
    lefts = set()
    for number in range(40):
        image = transform([ramp(80, 40)], generator_for(number))
        first, last, top, bottom = seen(image)
        assert (top, bottom) == pytest.approx((0, 200), abs=8)
        assert abs(last - first) == pytest.approx(100, abs=12)
        lefts.add(round(min(first, last).item()))
    assert min(lefts) < 10
    assert max(lefts) > 85


def test_crops_of_small_images_equal_slices_of_the_padded_image():
    pixels = np.random.RandomState(0).randint(1, 256, (16, 16, 3), dtype=np.uint8)
    padded = np.pad(pixels, ((2, 2), (2, 2), (0, 0)))
    slices = [padded[top : top + 16, left : left + 16] for top in range(5) for left in range(5)]
    expected = {window.tobytes() for window in slices} | {window[:, ::-1].tobytes() for window in slices}
    transform = Training("crop-flip", 16, Resize(), None)
    found = set()
    for number in range(60):
        image = transform([Image.fromarray(pixels)], generator_for(number))
        found.add(image[0].movedim(0, -1).numpy().tobytes())
    assert found <= expected
    assert len(found) > 20


@pytest.mark.parametrize("side", [12, 16, 18])
def test_without_augmentation_small_images_are_those_of_batches_on_the_device(side):
    pixels = torch.randint(0, 256, (1, side, side, 3), generator=generator_for(0), dtype=torch.uint8)
    data = InMemory(pixels, torch.zeros(1, dtype=torch.int64))
    raw = Normalise((0.0,) * 3, (1 / 255,) * 3, torch.device("cpu"))
    on_device = OnDevice(data, evaluation_order(1, 1), Augmentation("none", 16), raw, torch.device("cpu"), 0)
    (expected, _), *_ = on_device.epoch(0)
    image = Training("none", 16, Resize(), None)(data.read(0, lambda count: []), generator_for(0))
    # Pillow rounds resized pixels to bytes.
    torch.testing.assert_close(image.float(), expected, rtol=0, atol=1)


def test_shifts_do_not_mirror():
    transform = Training("shift", 32, Resize(), None)
    for number in range(20):
        first, last, *_ = seen(transform([ramp(32, 32)], generator_for(number))[..., 4:28, 4:28])
        assert first < last


def test_transforms_can_be_sent_to_workers():
    """Where processes are not forked, everything they need is pickled."""
    transform = Training("crop-flip", 16, Resize(), rand_augment("rand-m9-mstd0.5-inc1", 16, (0.5, 0.5, 0.5)))
    copy = pickle.loads(pickle.dumps(transform))
    image = ramp(16, 16)
    assert torch.equal(copy([image], generator_for(0)), transform([image], generator_for(0)))
