"""SVD-Pade."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_count
from ._base import SpectralGradient, pairs


@dataclass(frozen=True)
class EigenPade(SpectralGradient):
    """The geometric series of ``EigenTaylor`` replaced by its diagonal Pade approximant.

    The series sums to 1/(1 - r), which is already rational: every approximant equals it, and the linear system for its
    coefficients is singular. What is left to decide is r near 1. An [N, N] approximant is matched to 2N + 1 terms,
    whose sum at r = 1 is 2N + 1; the value is limited to that, which also settles exact ties.

    Args:
        degree: N.

    Raises:
        ValueError: if ``degree`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "eigen", gradient=matroot.EigenPade()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "eigen-pade"

    degree: int = 10

    def __post_init__(self) -> None:
        require_count(self, "degree")

    def off_diagonal(self, values: Tensor, f: Tensor, scale: Tensor) -> Tensor:
        (i, j), (f_i, f_j) = pairs(values), pairs(f)
        larger = torch.maximum(i, j)
        gap = torch.maximum((i - j).abs(), larger / (2 * self.degree + 1))
        return (f_i - f_j) * torch.sign(i - j) / gap
