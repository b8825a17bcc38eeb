"""Digits out of scikit-learn."""

import sys

import pytest
import torch

from matroot.train.data import DataError, open_data
from matroot.train.data.readers.digits import read_digits

from ..look_alikes import recipe


def test_a_fixed_stratified_split():
    digits = read_digits(16)
    assert digits.train.pixels.shape == (1438, 16, 16, 1)
    assert digits.test.pixels.shape == (359, 16, 16, 1)
    train, test = digits.train.labels.bincount(), digits.test.labels.bincount()
    assert (test / (train + test) - 0.2).abs().max() < 0.005
    # Recorded once: figures of different machines are of the same split.
    assert digits.test.labels[:10].tolist() == [3, 7, 3, 9, 0, 8, 7, 0, 8, 0]
    assert torch.equal(digits.test.pixels, read_digits(16).test.pixels)


def test_pixels_use_the_whole_range():
    pixels = read_digits(8).train.pixels
    assert pixels.min() == 0
    assert pixels.max() == 255


def test_batches_are_normalised():
    data = open_data(recipe("digits", augment="shift", batch_size=100), None, torch.device("cpu"))
    images = torch.cat([batch for batch, _ in data.test.epoch(1)])
    assert images.shape == (359, 1, 16, 16)
    # Of the pixels as stored; interpolation to 16 pixels smooths them.
    assert images.mean().item() == pytest.approx(0, abs=0.05)
    assert images.std().item() == pytest.approx(1, abs=0.2)
    assert data.channels == 1
    assert data.num_classes == 10
    assert "stand in for CIFAR-10" in data.stand_in


def test_colour_is_needed_for_rand_augment():
    with pytest.raises(DataError, match="digits has none"):
        open_data(recipe("digits", rand_augment="rand-m9"), None, torch.device("cpu"))


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match=r"pip install .matroot\[training\]"):
        read_digits(16)
