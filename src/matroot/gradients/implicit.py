"""Implicit function theorem with an iterative linear solve."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .._tracing import concrete
from ..backends import eager
from ..methods._base import require_count, require_positive
from ._base import ImplicitGradient


@dataclass(frozen=True)
class Implicit(ImplicitGradient):
    """Implicit differentiation of f(A, S) = S^2 - A.

    The theorem asks for (df/dS)^-1 applied to the upstream gradient; df/dS is the map
    X -> S X + X S, an n^2 x n^2 matrix that is never formed: conjugate gradients apply it,
    one product an iteration. Iterations needed grow with the fourth root of the condition
    number of A. A matrix stops changing once its residual is below ``tolerance`` (None: 8 eps)
    of the right-hand side, or once only directions are left in which S is below sqrt(eps) of
    its norm: the part of the gradient in the null space of S is left out.
    """

    name = "implicit"
    linear = False  # step lengths depend on C

    iterations: int = 64
    tolerance: float | None = None

    def __post_init__(self) -> None:
        require_count(self, "iterations")
        if self.tolerance is not None:
            require_positive(self, "tolerance")

    def solve(self, B: Tensor, C: Tensor, spectrum: tuple[Tensor, Tensor] | None) -> Tensor:
        tolerance = 8 * torch.finfo(B.dtype).eps if self.tolerance is None else self.tolerance
        # Unit right-hand side: the squares below neither overflow nor underflow.
        size = C.abs().amax((-2, -1), keepdim=True)
        size = torch.where(size > 0, size, 1)
        residual = C / size
        X, direction = torch.zeros_like(C), residual
        energy = _inner(residual, residual)
        target = tolerance**2 * energy
        flat = torch.finfo(B.dtype).eps ** 0.5 * eager.frobenius(B)
        active = torch.ones_like(energy, dtype=torch.bool)
        for _ in range(self.iterations):
            active = active & ~(energy <= target)
            if concrete(active) and not active.any():
                break
            image = 2 * eager.hermitian(eager.product(B, direction))
            curvature = _inner(direction, image)
            active = active & ~(curvature <= flat * _inner(direction, direction))
            step = torch.where(active, energy / curvature, 0)
            X = X + step * direction
            residual = residual - step * image
            old, energy = energy, torch.where(active, _inner(residual, residual), energy)
            direction = residual + torch.where(active, energy / old, 0) * direction
        return size * X


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Re <a, b> per matrix, shape (*, 1, 1)."""
    product = (a.conj() * b).real if a.is_complex() else a * b
    return product.sum((-2, -1), keepdim=True)
