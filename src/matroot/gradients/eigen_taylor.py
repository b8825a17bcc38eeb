"""SVD-Taylor."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_count
from ._base import SpectralGradient, geometric_sum, pairs


@dataclass(frozen=True)
class EigenTaylor(SpectralGradient):
    """1/(a - b) = (1/a) sum_{k<=N} (b/a)^k for a > b, truncated.

    At most (N + 1)/a, so nearly repeated eigenvalues stay finite.

    Args:
        degree: N. The paper uses 20 for whitening and 100 for covariance pooling.

    Raises:
        ValueError: if ``degree`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "eigen", gradient=matroot.EigenTaylor(degree=100)).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "eigen-taylor"

    degree: int = 20

    def __post_init__(self) -> None:
        require_count(self, "degree")

    def off_diagonal(self, values: Tensor, f: Tensor, scale: Tensor) -> Tensor:
        (i, j), (f_i, f_j) = pairs(values), pairs(f)
        larger, smaller = torch.maximum(i, j), torch.minimum(i, j)
        inverse_gap = geometric_sum(smaller / larger, self.degree + 1) / larger
        return (f_i - f_j) * torch.sign(i - j) * inverse_gap
