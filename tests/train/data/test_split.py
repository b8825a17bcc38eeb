"""Splits that are made here."""

import pytest
import torch

from matroot.train.data.split import stratified_split


@pytest.mark.parametrize("share", [0.2, 1 / 3])
def test_a_stratified_split_is_a_partition(share):
    labels = torch.arange(120) % 4
    train, test = stratified_split(labels, share)
    assert sorted(train.tolist() + test.tolist()) == list(range(120))
    assert labels[test].bincount().tolist() == [round(30 * share)] * 4
    assert test.tolist() == sorted(test.tolist())
    # Not the first of every class.
    assert test.tolist() != list(range(len(test)))
