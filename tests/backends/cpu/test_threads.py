"""Threads on the CPU are torch's, and are left as they are."""

import threading
from pathlib import Path

import pytest
import torch

import matroot

from ...installation import needs_compiled_code
from ...matrices import error, exact_root, wishart

TASKS = Path("/proc/self/task")


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_decompositions_start_none(set_threads):
    """A thread that computes has OpenMP threads of its own: beside those of this one every operation is slower."""
    set_threads(2)
    before = set(threading.enumerate())
    A = wishart(64, 40)
    assert error(matroot.sqrtm(A, "eigen"), exact_root(A)) < 50 * torch.finfo(A.dtype).eps
    assert set(threading.enumerate()) <= before
    assert torch.get_num_threads() == 2


@needs_compiled_code
@pytest.mark.skipif(not TASKS.exists(), reason="needs the list of threads of Linux")
@pytest.mark.parametrize("batch", [1, 2, 3, 9])
def test_compiled_code_ends_none(batch, set_threads):
    """With fewer matrices than threads too: others would have to be started for the next operation of torch."""
    set_threads(4)
    large = torch.zeros(1 << 20)
    A = wishart(batch, 8).requires_grad_()
    large.add_(1)
    before = set(TASKS.iterdir())
    for _ in range(3):
        torch.autograd.grad(matroot.sqrtm(A, backend="compiled").sum(), A)
        large.add_(1)
    assert before <= set(TASKS.iterdir())
