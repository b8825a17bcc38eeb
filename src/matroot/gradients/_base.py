"""What a gradient is: a frozen description of how the backward pass is computed."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from ..backends import torch_ops
from ..methods import Method
from ..methods.eigen import clamp_eigenvalues


class Gradient(ABC):
    """A choice of backward rule."""

    name: ClassVar[str]
    """What ``gradient=`` calls it, with its defaults."""

    def require(self, method: Method) -> None:  # noqa: B027 (nothing to require is a fine default)
        """Refuse a method that the rule cannot follow.

        Args:
            method: computes the roots.

        Raises:
            ValueError: saying why, if the rule cannot follow the method.
        """


class ImplicitGradient(Gradient):
    """Rules that follow from S S = A: the gradient solves a Lyapunov equation."""

    linear: ClassVar[bool] = True
    """Whether ``solve`` is a linear function of C operation by operation, so that automatic
    differentiation of it by C is right."""
    needs_both: ClassVar[bool] = False
    """Whether ``solve`` must be told the inverse of B."""

    def require(self, method: Method) -> None:
        if not method.is_root:
            raise ValueError(
                f"gradient '{self.name}' differentiates S S = A, but the result of method "
                f"'{method.name}' does not satisfy it; use gradient='unrolled'"
            )

    @abstractmethod
    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        """The Hermitian X with B X + X B = C, for Hermitian positive semidefinite B, Hermitian C.

        ``known`` is what the forward pass found out about B: its inverse if ``needs_both``, otherwise
        its eigenvalues and eigenvectors after a spectral method, otherwise nothing.
        """

    def solve_inverse(self, R: Tensor, G: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        """The Hermitian X with R X + X R = -R^2 G R^2."""
        # No name for the right-hand side, which the solver frees.
        return self.solve(R, -torch_ops.sandwich(torch_ops.product(R, R), G), known)


class SpectralGradient(Gradient):
    """Differentiable eigendecompositions: baselines that approximate 1/(lambda_i - lambda_j).

    For F = U f(lambda) U^H the textbook gradient is U (K^T o (U^H dU) + diag(dlambda)) U^H with
    dU = (G + G^H) U f, dlambda = diag(f' o U^H G U) and an antisymmetric K that stands for
    1/(lambda_i - lambda_j). Its Hermitian part, all that a Hermitian input can feel, is

        U (M o U^H G U) U^H,   M_ij = K_ij (f_i - f_j),   M_ii = f'_i.

    Each baseline is therefore one matrix M. They define a first derivative only.
    """

    def require(self, method: Method) -> None:
        if not method.spectral:
            raise ValueError(
                f"gradient '{self.name}' works on an eigendecomposition, which method "
                f"'{method.name}' does not compute; use method='eigen'"
            )

    def coupling(self, values: Tensor, power: float, scale: Tensor) -> Tensor:
        """The matrix M for f = lambda^power, shape (*, n, n)."""
        values = self.regularise(clamp_eigenvalues(values), scale)
        f = values**power
        off_diagonal = self.off_diagonal(values, f, scale)
        slope = power * f / values
        return torch.where(torch_ops.identity(off_diagonal) > 0, slope[..., None], off_diagonal)

    def regularise(self, values: Tensor, scale: Tensor) -> Tensor:
        """Change the eigenvalues before anything is computed from them."""
        return values

    @abstractmethod
    def off_diagonal(self, values: Tensor, f: Tensor, scale: Tensor) -> Tensor:
        """M_ij for i != j (the diagonal is overwritten).

        ``values`` are positive, ascending, shape (*, n), and the true eigenvalues are
        ``scale * values`` with ``scale`` of shape (*, 1, 1).
        """


def pairs(values: Tensor) -> tuple[Tensor, Tensor]:
    """values_i and values_j broadcast against each other."""
    return values[..., :, None], values[..., None, :]


def geometric_sum(ratio: Tensor, terms: int) -> Tensor:
    """1 + r + ... + r^(terms-1), also at r = 1."""
    total = torch.ones_like(ratio)
    for _ in range(terms - 1):
        total = 1 + ratio * total
    return total


def apply_in_eigenbasis(weights: Tensor, vectors: Tensor, G: Tensor) -> Tensor:
    """U (weights o U^H G U) U^H, Hermitian."""
    inner = weights * torch_ops.product(torch_ops.adjoint(vectors), torch_ops.product(G, vectors))
    return torch_ops.hermitian(torch_ops.product(vectors, torch_ops.product(inner, torch_ops.adjoint(vectors))))
