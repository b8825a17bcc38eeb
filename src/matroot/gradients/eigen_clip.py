"""SVD-Clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_positive
from ._base import SpectralGradient, pairs


@dataclass(frozen=True)
class EigenClip(SpectralGradient):
    """K_ij = 1/(lambda_i - lambda_j) with small differences and small eigenvalues floored.

    Both floors are absolute, in the units of the input, as published: the gradient depends on the scale of A. Repeated
    eigenvalues get coupling 0.

    Args:
        gap: differences smaller than this count as this.
        floor: eigenvalues below this count as this.

    Raises:
        ValueError: if ``gap`` or ``floor`` is not positive.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "eigen", gradient=matroot.EigenClip()).trace().backward()
        >>> A.grad.diagonal()
        tensor([0.5000, 0.2500])
    """

    name = "eigen-clip"

    gap: float = 0.01
    floor: float = 1e-5

    def __post_init__(self) -> None:
        require_positive(self, "gap")
        require_positive(self, "floor")

    def regularise(self, values: Tensor, scale: Tensor) -> Tensor:
        return torch.maximum(values, self.floor / scale[..., 0])

    def off_diagonal(self, values: Tensor, f: Tensor, scale: Tensor) -> Tensor:
        (i, j), (f_i, f_j) = pairs(values), pairs(f)
        size = torch.maximum((i - j).abs(), self.gap / scale)
        return (f_i - f_j) * torch.sign(i - j) / size
