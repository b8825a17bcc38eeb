"""Conjugate gradients for Lyapunov equations, a whole batch at once."""

import torch
from torch import Tensor

from .._tracing import is_host_readable
from ..backends import torch_ops


def solve(B: Tensor, C: Tensor, iterations: int, tolerance: float) -> Tensor:
    """Hermitian X with B X + X B = C for Hermitian B and C, one product an iteration.

    A matrix stops changing once its residual is below ``tolerance`` of C, or once only directions
    are left in which B is below sqrt(eps) of its norm.
    """
    # Unit right-hand side: the squares below neither overflow nor underflow.
    size = C.abs().amax((-2, -1), keepdim=True)
    size = torch.where(size > 0, size, 1)
    residual = direction = C / size
    del C  # memory for the iterations
    X = torch.zeros_like(residual)
    energy = torch_ops.frobenius(residual) ** 2
    target = tolerance**2 * energy
    flat = torch.finfo(B.dtype).eps ** 0.5 * torch_ops.frobenius(B)
    active = torch.ones_like(energy, dtype=torch.bool)
    for _ in range(iterations):
        active = active & ~(energy <= target)
        if is_host_readable(active) and not active.any():
            break
        image = _twice_hermitian(torch_ops.product(B, direction))
        curvature = _inner(direction, image)
        active = active & ~(curvature <= flat * torch_ops.frobenius(direction) ** 2)
        step = torch.where(active, energy / curvature, 0)
        X = torch.addcmul(X, step, direction)
        residual = torch.addcmul(residual, step, image, value=-1)
        del image
        old, energy = energy, torch.where(active, torch_ops.frobenius(residual) ** 2, energy)
        direction = torch.addcmul(residual, torch.where(active, energy / old, 0), direction)
    return size * X


def _twice_hermitian(matrix: Tensor) -> Tensor:
    """matrix + matrix^H."""
    return matrix + torch_ops.adjoint(matrix)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Re <a, b> per matrix, shape (*, 1, 1)."""
    # Sums of complex numbers are grouped by batch size; real ones are not.
    terms = torch.addcmul(a.real * b.real, a.imag, b.imag) if a.is_complex() else a * b
    return terms.sum(-1, keepdim=True).sum(-2, keepdim=True)
