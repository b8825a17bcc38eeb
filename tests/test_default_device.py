"""A default device of the process changes nothing for tensors that say where they are."""

import subprocess
import sys

import torch

import matroot

from .matrices import wishart

BACKENDS = {
    "auto": "float32",
    "compiled": "float32",
    "lapack": "float32",
    "torch": "float32",
    "refined": "float64",
    "embedded": "complex64",
}
"""With a dtype that each takes."""


def test_results_stay_where_the_input_is():
    """Workspace on another device is memory that compiled code cannot read: in a process of its own."""
    code = f"""
import torch, matroot
from matroot.backends.cpu.compiled import unavailable_reason
with torch.device("meta"):
    for backend, dtype in {BACKENDS}.items():
        if backend in ("compiled", "refined", "embedded") and unavailable_reason() is not None:
            continue
        A = torch.eye(6, dtype=getattr(torch, dtype), device="cpu").expand(3, 6, 6).clone()
        X = A.clone().requires_grad_()
        S, R = matroot.roots(X, backend=backend)
        (gradient,) = torch.autograd.grad((S, R), X, (A, A))
        assert S.device == R.device == gradient.device == A.device
        torch.testing.assert_close(S.detach(), A)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_method_and_gradient():
    A = wishart(2, 5)
    pairs = [(name, None) for name in ("taylor", "pade", "newton-schulz", "minimax", "eigen")]
    pairs += [("eigen", gradient) for gradient in ("lyapunov", "krylov", "smith", "implicit", "eigen-clip")]
    for method, gradient in pairs:
        X, Y = A.clone().requires_grad_(), A.clone().requires_grad_()
        ones = torch.ones_like(A)
        (expected,) = torch.autograd.grad(matroot.sqrtm(Y, method, gradient=gradient), Y, ones)
        with torch.device("meta"):
            (found,) = torch.autograd.grad(matroot.sqrtm(X, method, gradient=gradient), X, ones)
        torch.testing.assert_close(found, expected)
