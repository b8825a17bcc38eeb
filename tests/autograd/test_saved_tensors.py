"""Backward passes do not trust the layout or the dtype of what autograd hands them."""

import pytest
import torch

import matroot
from matroot._autograd.ops import minimax_roots, smith_solve

from ..installation import needs_compiled_code
from ..matrices import random_like, wishart


@pytest.mark.parametrize("method", ["auto", "eigen"])
@pytest.mark.parametrize(
    "unpack",
    [
        lambda T: T.mT.contiguous().mT,
        lambda T: T.repeat_interleave(2, -1)[..., ::2],
        lambda T: T.unsqueeze(-1).expand(*T.shape, 2)[..., 0],
    ],
    ids=["transposed", "spread", "expanded"],
)
def test_hooks_may_change_the_layout(method, unpack):
    A = wishart(3, 6)
    X = A.clone().requires_grad_()
    (expected,) = torch.autograd.grad(matroot.sqrtm(X, method), X, A)
    with torch.autograd.graph.saved_tensors_hooks(lambda T: T, unpack):
        S = matroot.sqrtm(X, method)
    (found,) = torch.autograd.grad(S, X, A)
    torch.testing.assert_close(found, expected)


def test_hooks_may_change_the_dtype():
    A = wishart(3, 6, dtype=torch.float32)
    X = A.clone().requires_grad_()
    (expected,) = torch.autograd.grad(matroot.sqrtm(X), X, A)
    with torch.autograd.graph.saved_tensors_hooks(lambda T: T.double(), lambda T: T):
        S = matroot.sqrtm(X)
    (found,) = torch.autograd.grad(S, X, A)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)


@needs_compiled_code
def test_operators_take_any_layout():
    A, G = wishart(3, 6), random_like(wishart(3, 6))
    S, R = minimax_roots(A, 0.0)
    expected = smith_solve(S, R, G, None, 0.0)
    transposed = [T.mT.contiguous().mT for T in (A, S, R, G)]
    assert torch.equal(minimax_roots(transposed[0], 0.0)[0], S)
    assert torch.equal(smith_solve(*transposed[1:], None, 0.0), expected)
    assert torch.equal(smith_solve(S, R, torch._neg_view(-G), None, 0.0), expected)


@pytest.mark.parametrize("method", ["auto", "eigen", "pade"])
def test_tensors_without_storage(method):
    """Zeros that PyTorch makes for derivatives it knows to vanish have no memory to read."""
    zero = torch._efficientzerotensor((3, 6, 6), dtype=torch.float64)
    assert not matroot.sqrtm(zero, method).any()
    X = wishart(3, 6).requires_grad_()
    (gradient,) = torch.autograd.grad(matroot.sqrtm(X, method), X, zero)
    assert not gradient.any()
