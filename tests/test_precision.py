"""Process-wide precision settings and autocast change nothing."""

import contextlib

import pytest
import torch

import matroot
from matroot.backends import torch_ops

from .matrices import error, exact_root, wishart
from .pairs import CASES, evaluate, value_and_gradient

A = wishart(3, 16, dtype=torch.float32)


@contextlib.contextmanager
def matmul_precision(level):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(level)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


every_case = pytest.mark.parametrize(("pair", "name"), CASES)


def in_two_contexts(pair, name, forward, backward):
    """Value, and the gradient of its sum."""
    X = A.clone().requires_grad_()
    with forward:
        value = evaluate(pair, name, X)
    with backward:
        (found,) = torch.autograd.grad(value, X, torch.ones_like(value))
    return value.detach(), found


@every_case
def test_autocast_changes_nothing(pair, name):
    """Around either pass; around the backward pass ordinary operations that autograd recorded are the caller's."""
    plain, autocast = contextlib.nullcontext(), torch.autocast("cpu", torch.bfloat16)
    expected = in_two_contexts(pair, name, plain, plain)
    for contexts in [(autocast, plain)] + [(plain, autocast)] * (not pair.endswith("unrolled")):
        for found, true in zip(in_two_contexts(pair, name, *contexts), expected, strict=True):
            assert torch.equal(found, true)


def test_autocast_covariance():
    """A bfloat16 covariance from inside autocast is computed on in float32 and comes back bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        X = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
        covariance = X @ X.mT / 64
        S = matroot.sqrtm(covariance)
    assert covariance.dtype == S.dtype == torch.bfloat16
    assert error(S, exact_root(covariance)) < torch.finfo(torch.bfloat16).eps


@every_case
def test_float32_matmul_precision(pair, name):
    """Another order of sums changes what rounding does, and the inverse of a Pade denominator amplifies that."""
    expected = value_and_gradient(pair, name, A)
    for level in ("high", "medium"):
        with matmul_precision(level):
            found = value_and_gradient(pair, name, A)
        for a, b in zip(found, expected, strict=True):
            assert error(a, b.double()) < (2e-4 if "pade" in pair and name != "sqrtm" else 2e-5), level


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
