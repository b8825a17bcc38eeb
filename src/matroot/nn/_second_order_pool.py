"""What all covariance pools share: the root of their covariances and its flattening."""

import torch
from torch import Tensor, nn

from .._api import sqrtm
from .._registry import validate
from ..gradients import Gradient
from ..methods import Method
from ._printing import constructor_arguments
from .covariance import flush_subnormal
from .triangle import triangle as upper_triangle


class SecondOrderPool(nn.Module):
    """Pools that return the square root of a covariance, or its upper triangle; both steps are optional."""

    def __init__(self, root: bool, triangle: bool, method: str | Method, gradient: str | Gradient | None) -> None:
        super().__init__()
        validate(method, gradient, "sqrt")
        self.root, self.triangle = root, triangle
        self.method, self.gradient = method, gradient

    def pool_covariance(self, covariance: Tensor, dtype: torch.dtype) -> Tensor:
        """Root and flattening of covariances (*, n, n): (*, n (n + 1)/2) or (*, n, n), in ``dtype``."""
        pooled = sqrtm(flush_subnormal(covariance), self.method, gradient=self.gradient) if self.root else covariance
        return self.flatten(pooled, dtype)

    def flatten(self, pooled: Tensor, dtype: torch.dtype) -> Tensor:
        """Symmetric matrices (*, n, n) as the pool returns them: (*, n (n + 1)/2) or (*, n, n), in ``dtype``."""
        return (upper_triangle(pooled) if self.triangle else pooled).to(dtype)

    def extra_repr(self) -> str:
        return constructor_arguments(self)
