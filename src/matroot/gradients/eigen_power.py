"""SVD-PI."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_count
from ._base import SpectralGradient, geometric_sum, pairs


@dataclass(frozen=True)
class EigenPower(SpectralGradient):
    """Gradient of eigenvectors found one by one by power iteration with deflation.

    For each eigenvector v of the deflated matrix M, dominant first, T power steps give
    dM = [sum_{k<T} (M/|Mv|)^k (I - v v^H)/|Mv|] dv v^H, and M <- M - M v v^H carries the gradient
    on. In the eigenbasis this never mixes different pairs i, j, and for a = lambda_i > b = lambda_j
    the two contributions add up to ::

        M_ij = f_j/b + W (f_i - f_j a/b),   W = (1/a) sum_{k<T} (b/a)^k,

    which tends to (f_i - f_j)/(a - b) as T grows. No loop over eigenvectors remains.

    Args:
        iterations: T.

    Raises:
        ValueError: if ``iterations`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "eigen", gradient=matroot.EigenPower()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "eigen-power"

    iterations: int = 20

    def __post_init__(self) -> None:
        require_count(self, "iterations")

    def off_diagonal(self, values: Tensor, f: Tensor, scale: Tensor) -> Tensor:
        (i, j), (f_i, f_j) = pairs(values), pairs(f)
        larger, smaller = torch.maximum(i, j), torch.minimum(i, j)
        f_larger, f_smaller = torch.where(i >= j, f_i, f_j), torch.where(i >= j, f_j, f_i)
        weight = geometric_sum(smaller / larger, self.iterations) / larger
        return f_smaller / smaller + weight * (f_larger - f_smaller * larger / smaller)
