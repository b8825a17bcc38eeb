"""SVD-Clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods._base import require_positive
from ._base import SpectralGradient, pairs


@dataclass(frozen=True)
class EigenClip(SpectralGradient):
    """K_ij = 1/(lambda_i - lambda_j) with small differences and small eigenvalues clamp_eigenvalues.

    Both floors are absolute, in the units of the input, as published: the gradient depends
    on the scale of A. Repeated eigenvalues get coupling 0.
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
