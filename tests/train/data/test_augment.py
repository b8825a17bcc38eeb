"""Augmentation of batches, against slices and against torchvision."""

import pytest
import torch

from matroot.models import _torchvision as _torchvision
from matroot.train.data.augment import Normalise, erase_, memory_format, resized_crop

# isort: split
from torchvision.transforms.v2 import functional as reference

CPU = torch.device("cpu")


def test_the_whole_image_is_itself():
    images = torch.rand(2, 3, 16, 16)
    windows = torch.tensor([[0, 0, 16, 16]] * 2)
    same = resized_crop(images, windows, torch.tensor([False, True]), 16)
    # Positions are rounded to 16 eps of float32; pixels differ by at most 1.
    torch.testing.assert_close(same[0], images[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(same[1], images[1].flip(-1), rtol=0, atol=1e-5)


def test_resized_crops_are_those_of_torchvision():
    images = torch.rand(3, 2, 20, 24)
    windows = torch.tensor([[3, 4, 6, 8], [0, 0, 20, 24], [11, 13, 9, 7]])
    ours = resized_crop(images, windows, torch.zeros(3, dtype=torch.bool), 32)
    for image, window, own in zip(images, windows.tolist(), ours, strict=True):
        theirs = reference.resized_crop(image, *window, [32, 32], antialias=False)
        # Half a source pixel at the border sees beyond the window, at most 4 of 32 pixels for the smallest.
        inside = slice(4, -4)
        torch.testing.assert_close(own[:, inside, inside], theirs[:, inside, inside], rtol=0, atol=1e-5)


def test_erasing_changes_the_rectangle_alone():
    images = torch.ones(2, 3, 4, 8, 10)
    erased = erase_(images.clone(), torch.tensor([[1, 2, 3, 4], [5, 5, 0, 0]]))
    assert erased[0, :, :, 1:4, 2:6].abs().max() == 0
    assert erased[0].sum() == images[0].sum() - 3 * 4 * 3 * 4
    assert torch.equal(erased[1], images[1])


def test_normalisation_is_that_of_torchvision():
    pixels = torch.randint(0, 256, (2, 3, 5, 5), dtype=torch.uint8)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
    theirs = reference.normalize(pixels.float() / 255, list(mean), list(std))
    torch.testing.assert_close(Normalise(mean, std, CPU)(pixels), theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 6, 3, 4, 5)])
def test_channels_last_in_memory(shape):
    images = torch.rand(shape)
    last = memory_format(images, channels_last=True)
    assert torch.equal(last, images)
    frames = last.flatten(0, -4)
    assert frames.is_contiguous(memory_format=torch.channels_last)
    assert frames.data_ptr() == last.data_ptr()
    assert memory_format(last, channels_last=False).is_contiguous()
