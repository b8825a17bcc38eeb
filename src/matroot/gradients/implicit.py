"""Implicit function theorem with an iterative linear solve."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_count, require_positive
from ._base import ImplicitGradient
from ._conjugate import solve


@dataclass(frozen=True)
class Implicit(ImplicitGradient):
    """Implicit differentiation of f(A, S) = S^2 - A.

    The theorem asks for (df/dS)^-1 applied to the upstream gradient; df/dS is the map
    X -> S X + X S, an n^2 x n^2 matrix that is never formed: conjugate gradients apply it,
    one product an iteration. Iterations needed grow with the fourth root of the condition
    number of A. The part of the gradient in the null space of S is left out: a matrix also stops
    changing once only directions are left in which S is below sqrt(eps) of its norm.

    Args:
        iterations: at most so many.
        tolerance: a matrix stops changing once its residual is below this, relative to the right-hand side; None:
            8 eps.

    Raises:
        ValueError: if ``iterations`` is not a positive integer, or ``tolerance`` is not positive.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, gradient=matroot.Implicit()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "implicit"
    linear = False  # step lengths depend on C

    iterations: int = 64
    tolerance: float | None = None

    def __post_init__(self) -> None:
        require_count(self, "iterations")
        if self.tolerance is not None:
            require_positive(self, "tolerance")

    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        tolerance = 8 * torch.finfo(B.dtype).eps if self.tolerance is None else self.tolerance
        return solve(B, C, self.iterations, tolerance)
