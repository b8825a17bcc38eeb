"""Process-wide precision settings and autocast change nothing."""

import contextlib

import pytest
import torch

import matroot
from matroot.backends import torch_ops

from .matrices import FUNCTIONS, error, exact_root, wishart
from .pairs import CASES, NAMED

A = wishart(3, 16, dtype=torch.float32)


@contextlib.contextmanager
def matmul_precision(level):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(level)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def value_and_gradient(pair, name, A, backward_context=contextlib.nullcontext):
    method, gradient = NAMED[pair]
    X = A.clone().requires_grad_()
    value = FUNCTIONS[name](X, method, gradient=gradient)
    with backward_context():
        (found,) = torch.autograd.grad(value, X, torch.ones_like(value))
    return value.detach(), found


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_autocast_around_the_forward_pass(pair, name):
    expected = value_and_gradient(pair, name, A)
    with torch.autocast("cpu", torch.bfloat16):
        method, gradient = NAMED[pair]
        X = A.clone().requires_grad_()
        value = FUNCTIONS[name](X, method, gradient=gradient)
    (found,) = torch.autograd.grad(value, X, torch.ones_like(value))
    assert torch.equal(value, expected[0])
    assert torch.equal(found, expected[1])


@pytest.mark.parametrize(("pair", "name"), [c for c in CASES if not c[0].endswith("unrolled")])
def test_autocast_around_the_backward_pass(pair, name):
    expected = value_and_gradient(pair, name, A)
    found = value_and_gradient(pair, name, A, lambda: torch.autocast("cpu", torch.bfloat16))
    assert torch.equal(found[1], expected[1])


def test_autocast_covariance():
    """A bfloat16 covariance from inside autocast is computed on in float32 and comes back bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        X = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
        covariance = X @ X.mT / 64
        S = matroot.sqrtm(covariance)
    assert covariance.dtype == S.dtype == torch.bfloat16
    assert error(S, exact_root(covariance)) < torch.finfo(torch.bfloat16).eps


@pytest.mark.parametrize("level", ["high", "medium"])
@pytest.mark.parametrize(("pair", "name"), CASES)
def test_float32_matmul_precision(pair, name, level):
    expected = value_and_gradient(pair, name, A)
    with matmul_precision(level):
        found = value_and_gradient(pair, name, A)
    for a, b in zip(found, expected, strict=True):
        assert error(a, b.double()) < 2e-4 if "pade" in pair and name != "sqrtm" else error(a, b.double()) < 2e-5


def test_setting_is_left_alone():
    with matmul_precision("high"):
        matroot.sqrtm(A, "taylor")
        assert torch.get_float32_matmul_precision() == "high"


def test_compiled_code_follows_a_changed_setting(monkeypatch):
    """The answer is a constant of the trace; changing the setting must trace again."""
    torch._dynamo.reset()
    compiled = torch.compile(torch_ops.product, backend="eager", fullgraph=True)
    X = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(compiled(X, X), X @ X)
    with matmul_precision("medium"):
        assert torch.equal(compiled(X, X), (X.double() @ X.double()).float())
    assert torch.equal(compiled(X, X), X @ X)


def test_three_pass_product():
    """What the tensor cores will round away of the remainders costs no more than float32 rounding."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(4, 64, 64, generator=generator) for _ in range(2))
    a1, b1 = torch_ops._leading(a), torch_ops._leading(b)
    assert torch.equal(torch_ops._leading(a1), a1)
    assert ((a - a1).abs() <= 2**-10 * a.abs()).all()
    rounded = a1 @ b1 + (a1 @ torch_ops._leading(b - b1) + torch_ops._leading(a - a1) @ b1)
    for product in (rounded, torch_ops._three_pass_product(a, b)):
        assert error(product, a.double() @ b.double()) < 1e-6
    assert error(a1 @ b1, a.double() @ b.double()) > 1e-4  # one pass would not do
    z = torch.complex(a, b)
    assert error(torch_ops._three_pass_product(z, z), z.to(torch.complex128) @ z.to(torch.complex128)) < 1e-6
