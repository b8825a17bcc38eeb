"""Eigendecomposition."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import torch_ops
from ._base import Method, Output


@dataclass(frozen=True)
class Eigen(Method):
    """Eigendecomposition, U f(lambda) U^H with f = sqrt or 1/sqrt: exact up to rounding.

    Eigenvalues below zero (by rounding only: the rest was refused before) count as zero in the root. In the inverse
    root, and wherever a gradient divides by them, eigenvalues below eps * lambda_max count as eps * lambda_max: finite,
    scale-free, and below what an eigendecomposition in this dtype resolves. On CUDA ``torch.linalg.eigh`` synchronises
    with the host.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 100.0]))
        >>> S = matroot.sqrtm(A, matroot.Eigen())
        >>> bool(matroot.residual(A, S) < 1e-5)
        True
    """

    name = "eigen"
    gradient_names = ("exact",)
    spectral = True

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        return spectral_roots(*torch_ops.eigh(A), output)


def spectral_roots(values: Tensor, vectors: Tensor, output: Output) -> tuple[Tensor, ...]:
    """The roots of matrices with this spectrum, then the spectrum."""
    roots = []
    if output != "invsqrt":
        roots.append(compose(vectors, torch.sqrt(values.clamp_min(0))))
    if output != "sqrt":
        roots.append(compose(vectors, torch.rsqrt(clamp_eigenvalues(values))))
    return (*roots, values, vectors)


def clamp_eigenvalues(values: Tensor, relative: float | None = None) -> Tensor:
    """Eigenvalues with those below ``relative`` (None: eps) of the largest raised to it."""
    relative = torch.finfo(values.dtype).eps if relative is None else relative
    return torch.maximum(values, relative * values.amax(-1, keepdim=True))


def compose(vectors: Tensor, values: Tensor) -> Tensor:
    """U diag(values) U^H."""
    return torch_ops.product(vectors * values[..., None, :], torch_ops.adjoint(vectors))
