"""Conjugate gradients preconditioned by the inverse root."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import torch_ops
from ..methods._base import require_count, require_positive
from ._base import ImplicitGradient
from ._conjugate import solve


@dataclass(frozen=True)
class Krylov(ImplicitGradient):
    """The Lyapunov equation of the root, added to that of the inverse root.

    With S = A^(1/2) and R = A^(-1/2), S X + X S = C is also R X + X R = R C R. Their sum with
    mu = sqrt(||S||_F/||R||_F), ::

        (S/mu + mu R) X + X (S/mu + mu R) = C/mu + mu R C R,

    has a condition number near half the fourth root of A's, so conjugate gradients need few
    iterations, of one product each; the right-hand side costs two. Both roots are needed: a
    method asked for one computes the other too.

    Args:
        tolerance: residual at which a matrix stops changing, relative to the right-hand side; None: 4 eps.
        iterations: at most so many; None: 14, in float64 64.

    Raises:
        ValueError: if ``tolerance`` is not positive, or ``iterations`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "minimax", gradient=matroot.Krylov()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "krylov"
    linear = False  # step lengths depend on C
    needs_both = True

    tolerance: float | None = None
    iterations: int | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_positive(self, "tolerance")
        if self.iterations is not None:
            require_count(self, "iterations")

    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        (inverse,) = known
        tolerance = 4 * torch.finfo(B.dtype).eps if self.tolerance is None else self.tolerance
        iterations = self.iterations or (64 if torch_ops.real_dtype(B) == torch.float64 else 14)
        mu = torch.sqrt(torch_ops.frobenius(B) / torch_ops.frobenius(inverse))
        # No names for the operator and the right-hand side, which the solver frees.
        return solve(torch.addcmul(B / mu, mu, inverse), _right(C, inverse, mu), iterations, tolerance)


def _right(C: Tensor, inverse: Tensor, mu: Tensor) -> Tensor:
    """C/mu + mu R C R."""
    return torch.addcmul(C / mu, mu, torch_ops.sandwich(inverse, C))
