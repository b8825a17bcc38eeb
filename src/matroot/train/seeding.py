"""Random numbers that depend on seed, epoch and process alone, so that a resumed run needs no generator's state."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_generators(*numbers: int) -> None:
    """Seed the generators of torch, on every device, of NumPy and of Python from numbers that are not negative."""
    high, low, for_numpy, for_python = map(int, np.random.SeedSequence(numbers).generate_state(4))
    torch.manual_seed(high << 31 | low >> 1)  # 63 bits
    np.random.seed(for_numpy)
    random.seed(for_python)


@contextmanager
def convolutions(deterministic: bool = True) -> Iterator[None]:
    """cuDNN's algorithms are those that give the same bits each time, chosen without timing them; or the fastest."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = deterministic, not deterministic
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before
