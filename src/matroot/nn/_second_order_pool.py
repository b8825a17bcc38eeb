"""What all covariance pools do once they have their covariances."""

import torch
from torch import Tensor, nn

from .._api import sqrtm
from ..gradients import Gradient
from ..methods import Method
from ._printing import constructor_arguments
from .triangle import triangle as upper_triangle


class SecondOrderPool(nn.Module):
    """Root and triangle, each if wanted."""

    def __init__(self, root: bool, triangle: bool, method: str | Method, gradient: str | Gradient | None) -> None:
        super().__init__()
        self.root, self.triangle = root, triangle
        self.method, self.gradient = method, gradient

    def finish(self, covariance: Tensor, dtype: torch.dtype) -> Tensor:
        """(*, n, n) -> (*, n (n + 1)/2) or (*, n, n), in ``dtype``."""
        pooled = sqrtm(normal(covariance), self.method, gradient=self.gradient) if self.root else covariance
        return self.flattened(pooled, dtype)

    def flattened(self, pooled: Tensor, dtype: torch.dtype) -> Tensor:
        """The same without the root."""
        return (upper_triangle(pooled) if self.triangle else pooled).to(dtype)

    def extra_repr(self) -> str:
        return constructor_arguments(self)


def normal(covariance: Tensor) -> Tensor:
    """Zero in the place of subnormal matrices, which rounding makes indefinite."""
    size = covariance.detach().abs().amax((-2, -1), keepdim=True)
    return covariance * (size >= torch.finfo(covariance.dtype).tiny)
