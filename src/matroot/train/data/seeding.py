"""Random numbers that depend on what they are for, not on what was drawn before."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def generator_for(*numbers: int) -> torch.Generator:
    """A generator on the CPU for seed, epoch and perhaps example; ValueError for negative numbers."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))


@contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Inside, the generators of Python and NumPy start from ``seed``; afterwards they go on as if unused."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
