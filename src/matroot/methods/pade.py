"""Matrix Pade approximant (MPA)."""

import math
from dataclasses import dataclass
from operator import index
from typing import Literal

import torch
from torch import Tensor

from .._tracing import constant_in_traces
from ..backends import torch_ops
from ..coefficients import pade_in_x
from ._base import Method, Output, require_choice, require_count
from ._polynomial import evaluate

_MOST_BY_POLYNOMIALS = 5


@dataclass(frozen=True)
class Pade(Method):
    """Diagonal [N, N] approximant: Q^-1 P for the root, P^-1 Q for the inverse root.

    On an eigenvalue x of X = A/||A||_F the root is sqrt(x) coth((2N+1) artanh sqrt(x)). An eigenvalue 0 becomes
    sqrt(||A||_F)/(2N+1) in the root and its reciprocal in the inverse root (1/11 and 11 at N = 5): a built-in
    regulariser.

    Args:
        degree: N.
        form: ``"polynomial"`` evaluates P and Q, then takes one positive definite solve per root, and N - 1 products or
            fewer. The polynomials are taken in X, where their coefficients are positive (in I - X they would cancel),
            but their values still span 4^N: so many eps are lost. ``"partial-fractions"`` takes N positive definite
            solves per root, and loses little at any degree. None: polynomials up to degree 5 (three digits), partial
            fractions above.

    Raises:
        ValueError: if ``degree`` is not a positive integer, or ``form`` is another name.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 2.0]))
        >>> S = matroot.sqrtm(A, matroot.Pade(degree=7))
        >>> bool(matroot.residual(A, S) < 1e-4)
        True
    """

    name = "pade"
    gradient_names = ("lyapunov",)

    degree: int = 5
    form: Literal["polynomial", "partial-fractions"] | None = None

    def __post_init__(self) -> None:
        require_count(self, "degree")
        if self.form is not None:
            require_choice(self, "form", ("polynomial", "partial-fractions"))

    @property
    def by_polynomials(self) -> bool:
        """Whether the form taken is that of polynomials."""
        return self.degree <= _MOST_BY_POLYNOMIALS if self.form is None else self.form == "polynomial"

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        norm = torch_ops.frobenius(A)
        scalar_roots = self._polynomials if self.by_polynomials else self._partial_fractions
        sqrt, invsqrt = scalar_roots(A / norm, output)
        scaled = []
        if sqrt is not None:
            scaled.append(torch.sqrt(norm) * sqrt)
        if invsqrt is not None:
            scaled.append(torch.rsqrt(norm) * invsqrt)
        return tuple(scaled)

    def _polynomials(self, X: Tensor, output: Output) -> tuple[Tensor | None, Tensor | None]:
        P, Q = evaluate(X, _fraction(index(self.degree)))
        return (
            torch_ops.solve_positive(Q, P) if output != "invsqrt" else None,
            torch_ops.solve_positive(P, Q) if output != "sqrt" else None,
        )

    def _partial_fractions(self, X: Tensor, output: Output) -> tuple[Tensor | None, Tensor | None]:
        """With m = 2N+1 and the t of ``poles``:

        root:         (1 + 2 sum_k (1 + t_k) x/(x + t_k))/m
        inverse root: (1 + 2 sum_k (1 + t_k)/(x + t_k))/m
        """
        eye = torch_ops.identity(X).expand_as(X)

        def fractions(inverse: bool, numerator: Tensor) -> Tensor:
            total = eye
            for t in poles(self.degree, inverse):
                total = total + 2 * (1 + t) * torch_ops.solve_positive(X + t * eye, numerator)
            return total / (2 * self.degree + 1)

        return fractions(False, X) if output != "invsqrt" else None, fractions(True, eye) if output != "sqrt" else None


def poles(degree: int, inverse: bool) -> list[float]:
    """The t_k = tan^2(angle) with poles -t_k of a root in x: angles k pi/m, for the inverse root (k - 1/2) pi/m."""
    offset = 0.5 if inverse else 0.0
    return [math.tan((k - offset) * math.pi / (2 * degree + 1)) ** 2 for k in range(1, degree + 1)]


# As in Taylor: a constant for torch.compile.
@constant_in_traces
def _fraction(degree: int) -> list[list[float]]:
    """Numerator and denominator."""
    return [[float(c) for c in polynomial] for polynomial in pade_in_x(degree)]
