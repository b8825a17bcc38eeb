"""The exact Lyapunov solution in an eigenbasis."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import torch_ops
from ..methods.eigen import clamp_eigenvalues
from ._base import ImplicitGradient, apply_in_eigenbasis, pairs


@dataclass(frozen=True)
class Exact(ImplicitGradient):
    """The exact solution of B X + X B = C, X_ij = C_ij/(b_i + b_j) in the eigenbasis of B.

    That is what Bartels-Stewart computes; B is the root, C the upstream gradient.

    No difference of eigenvalues appears, so it is finite at repeated eigenvalues. Eigenvalues of B below sqrt(eps) of
    the largest count as that, so a zero eigenvalue gives a large, finite gradient. Uses the decomposition of the
    forward pass if there is one, or makes its own.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, gradient=matroot.Exact()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "exact"

    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        values, vectors = known or _decompose(B)
        i, j = pairs(_floored_root(values))
        return apply_in_eigenbasis(1 / (i + j), vectors, C)

    def solve_inverse(self, R: Tensor, G: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        # In the eigenbasis R^2 G R^2 is a weighing too: no products for the right-hand side.
        values, vectors = known or _decompose(R)
        i, j = pairs(_floored_root(values))
        return apply_in_eigenbasis(-((i * j) ** 2) / (i + j), vectors, G)


def _decompose(B: Tensor) -> tuple[Tensor, Tensor]:
    """``eigh`` with NaN eigenvalues where an iteration diverged, instead of an error for the batch."""
    finite = torch.isfinite(B).all(-1, keepdim=True).all(-2, keepdim=True)
    values, vectors = torch_ops.eigh(torch.where(finite, B, torch_ops.identity(B)))
    return torch.where(finite[..., 0], values, torch.nan), vectors


def _floored_root(values: Tensor) -> Tensor:
    return clamp_eigenvalues(values, torch.finfo(values.dtype).eps ** 0.5)
