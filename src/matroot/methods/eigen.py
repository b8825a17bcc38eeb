"""Eigendecomposition."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import eager
from ._base import Method, Wanted


@dataclass(frozen=True)
class Eigen(Method):
    """U f(lambda) U^H with f = sqrt or 1/sqrt: exact up to rounding.

    Eigenvalues below zero (by rounding only: the rest was refused before) count as zero in
    the root. In the inverse root, and wherever a gradient divides by them, eigenvalues below
    eps * lambda_max count as eps * lambda_max: finite, scale-free, and below what an
    eigendecomposition in this dtype resolves. On CUDA ``torch.linalg.eigh`` synchronises
    with the host.
    """

    name = "eigen"
    gradient_name = "exact"
    spectral = True

    def evaluate(self, A: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
        values, vectors = eager.eigh(A)
        roots = []
        if wanted != "invsqrt":
            roots.append(compose(vectors, torch.sqrt(values.clamp_min(0))))
        if wanted != "sqrt":
            roots.append(compose(vectors, torch.rsqrt(floored(values))))
        return (*roots, values, vectors)


def floored(values: Tensor, relative: float | None = None) -> Tensor:
    """Eigenvalues with those below ``relative`` (None: eps) of the largest raised to it."""
    relative = torch.finfo(values.dtype).eps if relative is None else relative
    return torch.maximum(values, relative * values.amax(-1, keepdim=True))


def compose(vectors: Tensor, values: Tensor) -> Tensor:
    """U diag(values) U^H."""
    return eager.product(vectors * values[..., None, :], eager.adjoint(vectors))
