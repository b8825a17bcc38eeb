"""The same on a GPU: values, gradients, precision settings, no synchronisation."""

import contextlib

import pytest
import torch

import matroot
from matroot.backends import torch_ops

from ..agreement import assert_same, computed_by, condition
from ..matrices import error, exact_gradient, exact_root, wishart
from ..pairs import CASES, NAMED, evaluate, through_eigenvectors
from ..pairs import value_and_gradient as in_place

PRODUCT_ONLY = [case for case in CASES if not any(word in case[0] for word in ("eigen", "exact"))]


def value_and_gradient(pair, name, A, **kwargs):
    """The value, and the gradient of its sum: nothing is made on the host."""
    X = A.detach().clone().requires_grad_()
    value = evaluate(pair, name, X, **kwargs)
    (found,) = torch.autograd.grad(value, X, torch.ones_like(value))
    return value.detach(), found


@contextlib.contextmanager
def tf32():
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = "ieee"


@pytest.mark.parametrize(("pair", "name"), CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_same_as_on_the_cpu(pair, name, dtype):
    A = wishart(5, 12, dtype=dtype)
    for found, expected in zip(
        value_and_gradient(pair, name, A.cuda()), value_and_gradient(pair, name, A), strict=True
    ):
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("pair", "name"), CASES)
@pytest.mark.parametrize("kind", ["nan", "inf", "indefinite"])
def test_one_bad_matrix_harms_no_other(pair, name, kind):
    A = wishart(6, 16, dtype=torch.float32).cuda()
    bad = A.clone()
    bad[2] = -bad[2] if kind == "indefinite" else float(kind)
    good = [0, 1, 3, 4, 5]
    k, backends = condition(A, through_eigenvectors(pair)), computed_by(A, *NAMED[pair])
    expected, found = value_and_gradient(pair, name, A), value_and_gradient(pair, name, bad)
    for part, true, backend in zip(found, expected, backends, strict=True):
        assert_same(part[good], true[good], backend, k[good])
        assert torch.isnan(part[2]).all()


@pytest.mark.parametrize("n", [7, 33, 64])
@pytest.mark.parametrize("pair", ["minimax/smith", "taylor/lyapunov", "pade/lyapunov", "newton-schulz/lyapunov"])
def test_no_address_changes_a_result(pair, n):
    """Kernels find the same bits for a matrix wherever it lies; odd sizes put a batch at every alignment."""
    A = wishart(n, dtype=torch.float32).cuda()
    assert computed_by(A, *NAMED[pair]) == ("triton", "triton")
    expected = in_place(pair, "roots", A[None])
    memory = torch.empty(16 * n * n + 16, device="cuda")
    for start in range(16):
        batch = memory[start : start + 16 * n * n].view(16, n, n).copy_(A)
        for found, true in zip(in_place(pair, "roots", batch), expected, strict=True):
            assert_same(found, true.expand_as(found), "triton", 1.0)


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_tf32_changes_nothing(pair, name):
    A = wishart(8, 64, dtype=torch.float32).cuda()
    plain = value_and_gradient(pair, name, A)
    with tf32():
        found = value_and_gradient(pair, name, A)
    tolerance = 3e-4 if "pade" in pair and name != "sqrtm" else 3e-5
    for a, b in zip(found, plain, strict=True):
        assert error(a, b.double()) < tolerance


def test_tf32_would_matter():
    """The setting is in force here: a plain product does lose digits."""
    X = torch.randn(4, 64, 64, device="cuda")
    true = X.double() @ X.double()
    with tf32():
        assert error(X @ X, true) > 1e-4
        assert error(torch_ops.product(X, X), true) < 1e-6
        Z = torch.complex(X, X.mT)
        wide = Z.to(torch.complex128)
        assert error(torch_ops.product(Z, Z), wide @ wide) < 1e-6


def test_compiled_code_ignores_tf32():
    torch._dynamo.reset()
    A = wishart(8, 64, dtype=torch.float32).cuda()
    compiled = torch.compile(lambda X: matroot.sqrtm(X, **matroot.preset("mtp-lya")), fullgraph=True)
    expected = value_and_gradient("taylor/lyapunov", "sqrtm", A)
    for context in (contextlib.nullcontext, tf32, contextlib.nullcontext):
        X = A.clone().requires_grad_()
        with context():
            value = compiled(X)
            (gradient,) = torch.autograd.grad(value, X, torch.ones_like(value))
        assert error(value.detach(), expected[0].double()) < 1e-5
        assert error(gradient, expected[1].double()) < 1e-5


@pytest.mark.parametrize(("pair", "name"), PRODUCT_ONLY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_synchronisation(pair, name, dtype):
    A = wishart(8, 32, dtype=torch.float32).to("cuda", dtype)
    value_and_gradient(pair, name, A, ridge=1e-3)  # libraries may synchronise when first loaded
    torch.cuda.set_sync_debug_mode("error")
    try:
        value_and_gradient(pair, name, A, ridge=1e-3)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("n", [32, 100, 256])
def test_no_synchronisation_in_kernels(n):
    A = wishart(8, n, dtype=torch.float32).cuda().requires_grad_()

    def step():
        return torch.autograd.grad(matroot.sqrtm(A, ridge=1e-3).sum(), A)

    step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    A = wishart(8, 32, dtype=torch.float32).cuda()
    expected = value_and_gradient("pade/lyapunov", "sqrtm", A)
    with torch.autocast("cuda", dtype):
        found = value_and_gradient("pade/lyapunov", "sqrtm", A)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_float32_default_is_accurate():
    A = wishart(64, 64, dtype=torch.float32)
    X = A.cuda().requires_grad_()
    S = matroot.sqrtm(X)
    G = wishart(64, 64, seed=1, dtype=torch.float32)
    (gradient,) = torch.autograd.grad(S, X, G.cuda())
    # cuSOLVER's float32 eigenvectors are orthogonal to 1e-5 only.
    assert error(S.detach().cpu(), exact_root(A)) < 1e-4
    assert error(gradient.cpu(), exact_gradient(A, G)) < 1e-4


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "eigen"])
def test_scales(method, scale):
    A = wishart(4, 16).cuda()
    S = matroot.sqrtm((scale * A).float(), method)
    assert error(S, scale**0.5 * matroot.sqrtm(A, method)) < 1e-5
