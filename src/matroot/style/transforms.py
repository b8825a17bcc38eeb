"""How features are given the covariance of a style: frozen objects, one a linear map."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .._api import invsqrtm, sqrtm
from .._tracing import autocast_disabled
from ..backends import torch_ops
from ..gradients import Gradient
from ..methods import Method


class Transform(ABC):
    """A choice of M with M C M^T = S, for the covariances C of a content and S of a style."""

    name: ClassVar[str]
    """What ``transform=`` calls it, with its defaults."""

    @abstractmethod
    def matrix(self, covariance: Tensor, root: Tensor, method: str | Method, gradient: str | Gradient | None) -> Tensor:
        """M (B, C, C), from C (B, C, C) and the symmetric root of S (1 or B, C, C), in the dtype of C."""


@dataclass(frozen=True)
class Whitening(Transform):
    """Whitening and colouring: M = S^(1/2) C^(-1/2).

    Example:
        >>> from matroot.style import StyleNetwork, Whitening, stylize
        >>> network = StyleNetwork(channels=(4, 4, 4)).eval()
        >>> content, style = torch.rand(3, 20, 24), torch.rand(3, 16, 16)
        >>> stylize(content, style, transform=Whitening(), network=network).shape
        torch.Size([3, 20, 24])
    """

    name = "whitening"

    def matrix(self, covariance: Tensor, root: Tensor, method: str | Method, gradient: str | Gradient | None) -> Tensor:
        whiten = invsqrtm(covariance, method, gradient=gradient)
        with autocast_disabled(whiten):
            return root @ whiten


@dataclass(frozen=True)
class OptimalTransport(Transform):
    """The symmetric M, which moves features least: M = S^(1/2) (S^(1/2) C S^(1/2))^(-1/2) S^(1/2).

    It is the gradient of a convex function, so that no direction is exchanged for another. Its eigenvalues are the
    gains of directions. Where a style is rich in contrast and a content is flat they are large, and noise and the
    surroundings of edges are amplified with all else; larger ones than ``max_gain`` are lowered to that, and in these
    directions the variance stays below the style's. Computed in float64: S^(1/2) C S^(1/2) has the product of both
    condition numbers.

    Args:
        max_gain: of any direction; ``math.inf`` for exactly the covariance of the style.

    Raises:
        ValueError: if ``max_gain`` is below 1, which would change a picture in its own style.

    Example:
        >>> import math
        >>> from matroot.style import OptimalTransport, StyleNetwork, stylize
        >>> network = StyleNetwork(channels=(4, 4, 4)).eval()
        >>> content, style = torch.rand(3, 20, 24), torch.rand(3, 16, 16)
        >>> stylize(content, style, transform=OptimalTransport(max_gain=math.inf), network=network).shape
        torch.Size([3, 20, 24])
    """

    name = "transport"

    max_gain: float = 2.0

    def __post_init__(self) -> None:
        if not self.max_gain >= 1:
            raise ValueError(f"max_gain must be at least 1, got {self.max_gain}")

    def matrix(self, covariance: Tensor, root: Tensor, method: str | Method, gradient: str | Gradient | None) -> Tensor:
        with autocast_disabled(covariance):
            C, R = covariance.double(), root.double()
            M = R @ invsqrtm(torch_ops.hermitian(R @ C @ R), method, gradient=gradient) @ R
            if self.max_gain < math.inf:
                # min(M, g) = (M + g - |M - g|)/2, with |A| = (A^2)^(1/2). A g far above all gains would leave nothing
                # of M: twice its norm changes as little.
                limit = (2 * torch.linalg.matrix_norm(M.detach(), keepdim=True)).clamp(max=self.max_gain)
                above = torch_ops.hermitian(M) - limit * torch_ops.identity(M)
                modulus = sqrtm(torch_ops.hermitian(above @ above), method, gradient=gradient)
                M = M - (above + modulus) / 2
            return M.to(covariance.dtype)


_NAMED: dict[str, Transform] = {transform.name: transform for transform in (OptimalTransport(), Whitening())}
NAMES = tuple(_NAMED)


def transform_of(transform: str | Transform) -> Transform:
    """The transform of a name, or as it is; ValueError, listing all, for another name."""
    if isinstance(transform, Transform):
        return transform
    if transform not in _NAMED:
        raise ValueError(f"unknown transform {transform!r}; expected one of {', '.join(map(repr, NAMES))}")
    return _NAMED[transform]
