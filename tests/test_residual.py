"""The residual of a root."""

import pytest
import torch

import matroot

from .matrices import wishart


def test_definition():
    A, S = wishart(3, 5), wishart(3, 5, seed=1)
    norm = torch.linalg.matrix_norm
    torch.testing.assert_close(matroot.residual(A, S), norm(S @ S - A) / norm(A))
    torch.testing.assert_close(
        matroot.residual(A, S, inverse=True), norm(S @ A @ S - torch.eye(5, dtype=A.dtype)) / 5**0.5
    )


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_any_scale(scale):
    A = (scale * wishart(2, 6)).float()
    S, R = matroot.roots(A)
    assert matroot.residual(A, S).max() < 1e-5
    assert matroot.residual(A, R, inverse=True).max() < 1e-4
    torch.testing.assert_close(matroot.residual(A, 2 * S), torch.full((2,), 3.0), rtol=1e-4, atol=0)


def test_zero_matrix():
    zero, eye = torch.zeros(3, 3), torch.eye(3)
    assert matroot.residual(zero, zero) == 0
    assert matroot.residual(zero, eye) == torch.inf
    assert matroot.residual(eye, zero) == 1
    assert matroot.residual(zero, zero, inverse=True) == 1


def test_gradient_at_a_zero_matrix_is_finite():
    A = torch.zeros(2, 3, 3, requires_grad=True)
    S = torch.zeros(2, 3, 3, requires_grad=True)
    for gradient in torch.autograd.grad(matroot.residual(A, S).sum(), (A, S)):
        assert torch.isfinite(gradient).all()


def test_half_precision_is_measured_in_float32():
    A = wishart(6).bfloat16()
    S = matroot.sqrtm(A)
    assert matroot.residual(A, S).dtype == torch.float32
    assert 0 < matroot.residual(A, S) < torch.finfo(torch.bfloat16).eps


def test_empty():
    assert matroot.residual(torch.ones(0, 3, 3), torch.ones(0, 3, 3)).shape == (0,)
    assert torch.equal(matroot.residual(torch.ones(2, 0, 0), torch.ones(2, 0, 0)), torch.zeros(2))


def test_refused():
    with pytest.raises(ValueError, match="same shape"):
        matroot.residual(torch.eye(2), torch.eye(3))
    with pytest.raises(TypeError, match=r"root must be a torch\.Tensor"):
        matroot.residual(torch.eye(2), None)  # type: ignore
