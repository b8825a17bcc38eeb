"""Decompositions on the CPU: threads, and what they leave alone."""

import os
import threading

import pytest
import torch

import matroot
from matroot.backends.cpu import lapack

from ...matrices import error, exact_root, wishart


@pytest.fixture
def many_threads(monkeypatch):
    """Share out even small batches."""
    monkeypatch.setattr(lapack, "_WORTHWHILE", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_number_of_threads_is_left_alone(many_threads, monkeypatch):
    """Another thread that starts during a decomposition would keep what it finds."""
    eigh, seen = torch.linalg.eigh, []

    def spy(A):
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
        return eigh(A)

    monkeypatch.setattr(torch.linalg, "eigh", spy)
    matroot.sqrtm(wishart(8, 5), "eigen")
    assert seen
    assert set(seen) == {2}


def test_a_batch_shared_out(many_threads):
    A = wishart(9, 7)
    assert error(matroot.sqrtm(A, "eigen"), exact_root(A)) < 50 * torch.finfo(A.dtype).eps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork(many_threads):
    """Threads do not survive a fork: a child that waited for them would never end."""
    A = wishart(9, 7)
    matroot.sqrtm(A, "eigen")
    child = os.fork()
    if child == 0:
        lapack._eigh(A)
        os._exit(0)
    for _ in range(200):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        threading.Event().wait(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0
