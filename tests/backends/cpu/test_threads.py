"""Threads on the CPU are torch's, and are left as they are."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import matroot

from ...installation import needs_compiled_code
from ...matrices import error, exact_root, wishart

TASKS = Path("/proc/self/task")


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


FORK = """
import os, signal, torch, matroot
torch.set_num_threads(2)
A = torch.eye(8).expand(64, 8, 8).contiguous()
expected = matroot.sqrtm(A, backend="compiled")
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(not torch.equal(matroot.sqrtm(A, backend="compiled"), expected))
print(os.waitpid(child, 0)[1])
"""


@needs_compiled_code
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_wait_for_threads_of_its_parent():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
