"""Mean and covariance of features, and the transform that gives features those of a style."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .._api import sqrtm
from .._tracing import autocast_disabled
from ..backends import torch_ops
from ..gradients import Gradient
from ..methods import Method
from ..nn.covariance import add_to_diagonal, covariance_of_deviations, deviations
from ..nn.whiten_color import require_pair
from .transforms import Transform


@dataclass(frozen=True)
class Moments:
    """Mean and covariance of features, float32 at least.

    Attributes:
        mean: (B, C, 1).
        covariance: (B, C, C), divided by N - 1.
    """

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, features: Tensor, counts: Tensor | None = None) -> "Moments":
        """Of (B, C, H, W) over all positions, which count as much as ``counts``, (B or 1, 1, H, W), or all the same."""
        X = _by_position(features).mT
        X, mean = deviations(X)
        if counts is not None:
            share = counts.flatten(2).to(X.dtype)
            share = share / share.mean(-1, keepdim=True)
            with autocast_disabled(X):
                shift = X @ share.mT / X.shape[-1]  # of deviations: a large mean would cost digits
            mean, X = mean + shift, (X - shift).mul_(share.sqrt())
        return cls(mean, covariance_of_deviations(X, correction=1, eps=0.0))


@dataclass(frozen=True)
class StyleStatistics:
    """What a transfer takes from a style, at each transform.

    Attributes:
        means: (B, C, 1) each.
        roots: (B, C, C) each, roots of the covariances.
    """

    means: tuple[Tensor, ...]
    roots: tuple[Tensor, ...]

    @classmethod
    def of(
        cls,
        moments: Sequence[Moments],
        eps: float,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> "StyleStatistics":
        """The statistics that belong to moments.

        Args:
            moments: one for each transform.
            eps: added to the diagonals of the covariances.
            method: how the roots are taken, see :func:`matroot.sqrtm`.
            gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

        Returns:
            Means and roots.
        """
        roots = (sqrtm(add_to_diagonal(m.covariance, eps), method, gradient=gradient) for m in moments)
        return cls(tuple(m.mean for m in moments), tuple(roots))

    @property
    def covariances(self) -> tuple[Tensor, ...]:
        """The squares of the roots: of one style the covariance + eps I, of a blend that of the blended features."""
        return tuple(root @ root for root in self.roots)


def require_statistics(style: object) -> None:
    """TypeError for anything else, such as the style's picture."""
    if not isinstance(style, StyleStatistics):
        raise TypeError(f"style must be StyleStatistics, as found in pictures, got {type(style).__name__}")


def blend(styles: Sequence[StyleStatistics], weights: Sequence[float] | None = None) -> StyleStatistics:
    """Several styles as one: weighted means of their means and of their roots.

    The coloured features are linear in both, so this is the weighted mean of the features coloured by each style; it
    costs no more than one style, and no root is taken.

    Args:
        styles: at least one.
        weights: one a style, none negative, not all zero; they are divided by their sum. Equal unless given.

    Returns:
        The statistics of the blend.

    Raises:
        ValueError: for other weights, or for no style.

    Example:
        >>> from matroot.style import StyleNetwork, blend
        >>> network = StyleNetwork(channels=(4, 4, 4))
        >>> styles = [network.statistics(torch.rand(1, 3, 16, 16)) for _ in range(2)]
        >>> len(blend(styles, weights=[3, 1]).roots)
        3
    """
    shares = normalized_weights(len(styles), weights)

    def mean(tensors: Sequence[Tensor]) -> Tensor:
        return torch.stack([share * tensor for share, tensor in zip(shares, tensors, strict=True)]).sum(0)

    def mean_of_each(tables: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        return tuple(mean(tensors) for tensors in zip(*tables, strict=True))

    return StyleStatistics(mean_of_each([s.means for s in styles]), mean_of_each([s.roots for s in styles]))


def normalized_weights(count: int, weights: Sequence[float] | None) -> list[float]:
    """The weights of so many styles with sum 1; ValueError, see :func:`blend`."""
    if count == 0:
        raise ValueError("a transfer needs at least one style")
    if weights is None:
        return [1 / count] * count
    total = sum(weights)
    if len(weights) != count or min(weights) < 0 or not 0 < total < math.inf:
        raise ValueError(
            f"weights must be one for each of {count} styles, none negative and not all zero; got {list(weights)}"
        )
    return [weight / total for weight in weights]


@dataclass(frozen=True)
class Coloring:
    """The affine map that gives the content's features the statistics of the style: matrix x + offset."""

    matrix: Tensor
    """(B, C, C)."""
    offset: Tensor
    """(B, C, 1)."""

    @classmethod
    def between(
        cls,
        content: Moments,
        mean: Tensor,
        root: Tensor,
        strength: float | Tensor,
        eps: float,
        transform: Transform,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> "Coloring":
        """From the content's moments to the style's mean and root, see :class:`StyleStatistics`.

        strength a: a (M (x - content mean) + mean) + (1 - a) x with M of the transform; a tensor is (B,), one an image.
        ValueError for a style of other channels or another batch.
        """
        require_pair(content.mean, *root.shape[:2])
        if isinstance(strength, Tensor):
            strength = strength.to(content.mean).view(-1, 1, 1)
        M = transform.matrix(add_to_diagonal(content.covariance, eps), root, method, gradient)
        with autocast_disabled(M):
            matrix = strength * M
            offset = strength * mean - matrix @ content.mean
            return cls(matrix + (1 - strength) * torch_ops.identity(matrix), offset)

    def __call__(self, features: Tensor) -> Tensor:
        """(B, C, H, W) -> the same shape and dtype, channels last; computed in float32 at least."""
        X = _by_position(features).to(self.matrix.dtype)
        with autocast_disabled(X):
            colored = torch.baddbmm(self.offset.mT, X, self.matrix.mT)
        return colored.to(features.dtype).unflatten(1, features.shape[2:]).permute(0, 3, 1, 2)


def _by_position(features: Tensor) -> Tensor:
    """(B, C, H, W) -> (B, H W, C): the order in memory of channels_last, which convolutions read fastest."""
    return features.permute(0, 2, 3, 1).flatten(1, 2)
