"""Float64 and complex matrices on a GPU: by kernels and refinement, and in CUDA graphs by ordinary operations."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import matroot
from matroot import Minimax, Smith

from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, random_like, spectrum, with_eigenvalues
from .graphs import assert_graph_repeats


@pytest.mark.parametrize("n", [7, 64, 100, 200])
@pytest.mark.parametrize(
    ("dtype", "kappa"),
    [
        *((dtype, kappa) for dtype in (torch.float64, torch.complex128) for kappa in (1e2, 1e4, 1e6)),
        *((torch.complex64, kappa) for kappa in (1e2, 1e4)),
    ],
)
def test_errors(n, dtype, kappa):
    """Rounding A moves the root by eps sqrt(kappa), inverse root and gradients by eps kappa; the reference as well."""
    kinds = ("log", "one-small", "one-large")
    A = torch.stack([with_eigenvalues(spectrum(kind, n, kappa), 1, dtype) for kind in kinds])
    eps = torch.finfo(dtype).eps
    X, G = A.cuda().requires_grad_(), random_like(A)
    assert matroot.choose(X).backend == ("embedded" if dtype.is_complex else "refined")
    S, R = matroot.roots(X)
    assert error(S.detach().cpu(), exact_root(A)) < 30 * eps * kappa**0.75
    assert error(R.detach().cpu(), exact_inverse_root(A)) < 30 * eps * kappa
    for inverse, root in enumerate((S, R)):
        (gradient,) = torch.autograd.grad(root, X, G.cuda(), retain_graph=True)
        assert error(gradient.cpu(), exact_gradient(A, G, bool(inverse))) < 30 * eps * kappa


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_hard_matrices_are_deferred(dtype):
    """And the easy ones beside them have the result they have alone, but for rounding."""
    values = [spectrum("log", 32, kappa) for kappa in (1e2, 1e12)]
    A = torch.stack([with_eigenvalues(v, 2, dtype) for v in (*values, torch.zeros(32))]).cuda()
    S = matroot.sqrtm(A)
    torch.testing.assert_close(S[:1], matroot.sqrtm(A[:1]), rtol=0, atol=1e-13)
    torch.testing.assert_close(S[1:], matroot.sqrtm(A[1:], Minimax(), gradient=Smith(), backend="torch"))
    assert not S[2].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_captured(dtype):
    """A graph holds what ordinary operations compute."""
    A = with_eigenvalues(spectrum("log", 20, 1e3), 3, dtype).cuda()[None]
    expected = matroot.roots(A, backend="torch")
    assert_graph_repeats(lambda: matroot.roots(A), expected)


FIRST_IN_PROCESS = """
import torch, matroot
from tests.cuda.graphs import capture
from tests.matrices import random_like, wishart

A = wishart({count}, 20).cuda().requires_grad_()
G = random_like(A).cuda()

def step(**options):
    root = matroot.{function}(A, **options)
    return root, *torch.autograd.grad(root, A, G)

graph, captured = capture(step)
graph.replay()
for found, expected in zip(captured, step(backend="torch"), strict=True):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
"""


@pytest.mark.parametrize("function", ["sqrtm", "invsqrtm"])
@pytest.mark.parametrize("count", [1, 16])
def test_captured_first_of_all(function, count):
    """One call before it is enough to capture forward and backward pass, also in a process that has done nothing else:
    libraries have their handles then, which cannot be made in a graph."""
    code = FIRST_IN_PROCESS.format(function=function, count=count)
    ended = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
