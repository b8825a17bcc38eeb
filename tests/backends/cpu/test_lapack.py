"""Decompositions on the CPU: threads, which they leave alone."""

import threading

import torch

import matroot

from ...matrices import error, exact_root, wishart


def test_no_threads_but_those_of_torch():
    """A thread that computes has OpenMP threads of its own: beside those of this one every operation is slower."""
    before, count = threading.enumerate(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        A = wishart(64, 40)
        assert error(matroot.sqrtm(A, "eigen"), exact_root(A)) < 50 * torch.finfo(A.dtype).eps
        assert threading.enumerate() == before
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(count)
