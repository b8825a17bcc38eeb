"""What each process has of an epoch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from matroot.train.data.errors import DataError
from matroot.train.data.order import evaluation_order, training_order

WORLDS = st.integers(1, 5)


@settings(max_examples=50, deadline=None)
@given(st.integers(5, 200), st.integers(1, 12), WORLDS)
def test_training_batches_of_all_processes_are_those_of_one(examples, share, world):
    alone = training_order(examples, share * world)
    together = [training_order(examples, share * world, rank, world) for rank in range(world)]
    for step, part in enumerate(alone.parts):
        positions = [position for order in together for position in range(examples)[order.parts[step]]]
        whole = list(range(examples)[part])
        # What a set smaller than one batch cannot give to all alike is left out.
        assert positions == whole[: len(whole) // world * world]
        assert {len(range(examples)[order.parts[step]]) for order in together} == {len(positions) // world}


@settings(max_examples=50, deadline=None)
@given(st.integers(5, 200), st.integers(1, 60), WORLDS)
def test_evaluation_reads_every_example_once_and_in_order(examples, batch_size, world):
    orders = [evaluation_order(examples, batch_size, rank, world) for rank in range(world)]
    assert len({len(order.parts) for order in orders}) == 1
    parts = [range(examples)[part] for step in zip(*(order.parts for order in orders), strict=True) for part in step]
    assert [position for part in parts for position in part] == list(range(examples))
    assert min(map(len, parts)) >= 1
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_batches_have_the_size_asked_for():
    assert [len(range(10)[part]) for part in training_order(10, 4).parts] == [4, 4]
    assert [len(range(3)[part]) for part in training_order(3, 4).parts] == [3]
    assert max(len(range(10)[part]) for part in evaluation_order(10, 4).parts) <= 4


def test_shuffled_for_training_alone():
    generator = torch.Generator().manual_seed(0)
    shuffled = training_order(100, 10).permutation(generator)
    assert sorted(shuffled.tolist()) == list(range(100)) != shuffled.tolist()
    assert evaluation_order(100, 10).permutation(generator).tolist() == list(range(100))


def test_what_cannot_be_divided():
    with pytest.raises(DataError, match="batch of 10 cannot be divided equally among 4"):
        training_order(100, 10, 0, 4)
    with pytest.raises(DataError, match="training split has 3 examples"):
        training_order(3, 8, 0, 4)
    with pytest.raises(DataError, match="test split has 3 examples"):
        evaluation_order(3, 8, 0, 4)


@settings(max_examples=50, deadline=None)
@given(st.integers(10, 200), st.integers(1, 12), WORLDS)
def test_parts_to_be_mixed_in_pairs_are_even(examples, pairs, world):
    for rank in range(world):
        parts = training_order(examples, 2 * pairs * world, rank, world, paired=True).parts
        sizes = {len(range(examples)[part]) for part in parts}
        assert sizes == {min(2 * pairs, examples // (2 * world) * 2)}


def test_what_cannot_be_divided_into_pairs():
    with pytest.raises(DataError, match="batch of 6 cannot be divided equally among 2 processes, in pairs for mixup"):
        training_order(100, 6, 0, 2, paired=True)
    with pytest.raises(DataError, match="training split has 3 examples, expected 2 at least for each of 2 processes"):
        training_order(3, 8, 0, 2, paired=True)
