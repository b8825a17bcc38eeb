"""The fused GPU kernels, without a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import matroot

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "file",
    [
        "interpreted_triton.py",
        "interpreted_triton_features.py",
        "interpreted_triton_paper.py",
        "nn/interpreted_whitening_step.py",
    ],
)
def test_under_the_interpreter(file):
    """In a process of its own: the interpreter is chosen when kernels are decorated."""
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{file}"]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def test_kernels_are_imported_only_when_needed():
    call = "A = torch.eye(40).repeat(20, 1, 1); matroot.sqrtm(A); matroot.sqrtm(A, 'pade')"
    code = f"import sys, matroot, torch; {call}; assert 'matroot.backends.triton_kernels' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_without_a_gpu_there_is_no_kernel():
    assert matroot.choose(torch.empty(2, 8, 8, device="meta")).gradient == matroot.Krylov()
