"""Squared Smith doubling, preconditioned by the inverse root."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import torch_ops
from ..methods._base import require_count
from ._base import ImplicitGradient


@dataclass(frozen=True)
class Smith(ImplicitGradient):
    """The equation of ``Krylov``, B X + X B = C with B = S/mu + mu R, summed instead of iterated.

    For any p > 0, with K = (B + p I)^-1 and F = I - 2 p K, ::

        X = sum over k of F^k (2 p K C K) F^k,

    and doubling, X <- X + F X F, F <- F^2, sums 2^j terms in j rounds. Both roots are needed: a method
    asked for one computes the other too. Takes more products than ``Krylov`` and far fewer passes over
    memory, which is what counts on a CPU and inside a kernel.

    Args:
        rounds: of doubling; None: as many as each matrix needs and K from products alone, in compiled code on the
            CPU and in kernels; 7 elsewhere, in float64 10. Where B hardly reaches beyond its smallest possible
            eigenvalue, 2, kernels solve the same equation by Chebyshev's iteration, in fewer products.

    Raises:
        ValueError: if ``rounds`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "minimax", gradient=matroot.Smith()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "smith"
    needs_both = True

    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count(self, "rounds")

    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        (inverse,) = known
        mu = torch.sqrt(torch_ops.frobenius(B) / torch_ops.frobenius(inverse)).detach()
        K, p = _shifted_inverse(B, inverse, mu)
        X = _outer(K, _right(C, mu * inverse) / mu) * (2 * p)
        F = torch.addcmul(torch_ops.identity(B), K, p, value=-2)
        del K  # memory for the rounds
        rounds = self.rounds or (10 if torch_ops.real_dtype(B) == torch.float64 else 7)
        for _ in range(rounds - 1):
            X = X + _outer(F, X)
            F = torch_ops.product(F, F)
        X = X + _outer(F, X)
        return torch_ops.hermitian(X)


def _shifted_inverse(B: Tensor, inverse: Tensor, mu: Tensor) -> tuple[Tensor, Tensor]:
    """K and p for the operator of B and its inverse."""
    operator = torch_ops.hermitian(torch.addcmul(B / mu, mu, inverse))
    # The spectrum reaches from 2 to at most this.
    p = torch.sqrt(2 * torch_ops.largest_eigenvalue_bound(operator)).detach()
    eye = torch_ops.identity(B)
    operator = torch.addcmul(operator, p, eye)
    return torch_ops.hermitian(torch_ops.solve_positive(operator, eye.expand_as(B))), p


def _right(C: Tensor, scaled: Tensor) -> Tensor:
    """C + mu R C mu R."""
    return C + _outer(scaled, C)


def _outer(F: Tensor, X: Tensor) -> Tensor:
    """F X F."""
    return torch_ops.product(torch_ops.product(F, X), F)
