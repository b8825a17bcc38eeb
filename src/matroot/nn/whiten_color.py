"""Whitening and colouring: the content's features with the style's statistics."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .._api import invsqrtm, sqrtm
from .._registry import validate
from .._symbolic import one_node
from .._tracing import autocast_disabled
from ..gradients import Gradient
from ..methods import Method
from ._printing import constructor_arguments
from ._validation import require_eps, require_feature_maps
from .covariance import covariance_of_deviations, deviations


@dataclass(frozen=True)
class Coloring:
    """What transforms take from style features: made once, it serves several of them.

    Attributes:
        mean: of the style, (B, groups, C/groups, 1).
        root: of its covariances, (B, groups, C/groups, C/groups).
    """

    mean: Tensor
    root: Tensor

    def repeat(self, times: int) -> "Coloring":
        """For a batch that is repeated.

        Args:
            times: how often.

        Returns:
            The same styles so many times, one batch after the other.
        """
        return Coloring(self.mean.repeat(times, 1, 1, 1), self.root.repeat(times, 1, 1, 1))


@one_node
def coloring(
    style: Tensor,
    *,
    groups: int = 1,
    eps: float = 1e-5,
    method: str | Method = "auto",
    gradient: str | Gradient | None = None,
) -> Coloring:
    """Mean and root of the covariances of style features, for :func:`whiten_color` with the same options.

    Args:
        style: (B, C, *spatial).
        groups: divide the channels into this many groups, each with a covariance of its own.
        eps: added to the diagonals of the covariances.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

    Returns:
        Both, in float32 at least, also inside autocast.

    Raises:
        TypeError: for integers and complex numbers.
        ValueError: if groups do not divide the channels or eps is out of range.

    Example:
        >>> style = matroot.nn.coloring(torch.randn(1, 4, 10, 30))
        >>> [matroot.nn.whiten_color(torch.randn(2, 4, k, k), style).shape[-1] for k in (8, 16)]
        [8, 16]
    """
    require_feature_maps(style, "style")
    _require_groups(style.shape[1], groups)
    require_eps(eps)
    Y, mean = deviations(_grouped(style, groups).to(torch.promote_types(style.dtype, torch.float32)))
    return Coloring(mean, sqrtm(covariance_of_deviations(Y, correction=1, eps=eps), method, gradient=gradient))


@one_node
def whiten_color(
    content: Tensor,
    style: Tensor | Coloring,
    *,
    alpha: float | Tensor = 1.0,
    groups: int = 1,
    eps: float = 1e-5,
    method: str | Method = "auto",
    gradient: str | Gradient | None = None,
) -> Tensor:
    """Content features with the mean and covariance of style features.

    With S the covariances::

        alpha (S_style^(1/2) S_content^(-1/2) (content - its mean) + mean of style) + (1 - alpha) content

    Args:
        content: (B, C, *spatial).
        style: (B, C, *spatial) with other spatial dimensions if need be, or (1, C, *spatial) for all of the batch; or
            what :func:`coloring` returns for it.
        alpha: in [0, 1], 0 returns the content and 1 features with the mean and covariance of the style; a tensor must
            broadcast to the content's shape and is not checked.
        groups: divide the channels into this many groups, each with a covariance of its own.
        eps: added to the diagonals of both covariances, which are divided by N - 1. Features of variance below eps, and
            all of the content if it has fewer positions than channels, are whitened in part only.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

    Returns:
        Features of the content's shape, dtype and memory format; computed in float32 at least, also inside autocast.

    Raises:
        TypeError: for integers and complex numbers.
        ValueError: if channels or batches do not match, groups do not divide the channels, or alpha or eps is out of
            range.

    Example:
        >>> content, style = torch.randn(1, 4, 20, 20), 3 * torch.randn(1, 4, 10, 30)
        >>> colored = matroot.nn.whiten_color(content, style)
        >>> expected = matroot.nn.covariance(style, correction=1)
        >>> torch.allclose(matroot.nn.covariance(colored, correction=1), expected, atol=1e-2)
        True
    """
    require_blend(alpha)
    require_feature_maps(content, "content")
    _require_groups(content.shape[1], groups)
    require_eps(eps)
    if isinstance(style, Tensor):
        require_feature_maps(style, "style")
        require_pair(content, style.shape[0], style.shape[1])
        style = coloring(style, groups=groups, eps=eps, method=method, gradient=gradient)
    else:
        require_pair(content, style.mean.shape[0], style.mean.shape[1] * style.mean.shape[2])
        if style.mean.shape[1] != groups:
            raise ValueError(f"style was prepared for {style.mean.shape[1]} groups, not {groups}")
    dtype = torch.promote_types(content.dtype, torch.float32)
    X, _ = deviations(_grouped(content, groups).to(dtype))
    whiten = invsqrtm(covariance_of_deviations(X, correction=1, eps=eps), method, gradient=gradient)
    with autocast_disabled(content):
        # The two small matrices first: N columns are then multiplied once.
        colored = ((style.root.to(dtype) @ whiten) @ X + style.mean.to(dtype)).reshape(content.shape)
    weight = alpha.to(dtype) if isinstance(alpha, Tensor) else alpha
    return torch.lerp(content.to(dtype), colored, weight).to(content.dtype)


class WhitenColor(nn.Module):
    """:func:`whiten_color` with a blend that is learned.

    Content (B, C, *spatial) and style give the content's shape and dtype.

    Args:
        alpha: the blend at the start; the sigmoid of a parameter if ``learnable``, then strictly between 0 and 1.
        learnable: whether the blend is a parameter.
        groups: divide the channels into this many groups, each with a covariance of its own.
        eps: added to the diagonals of both covariances.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

    Raises:
        ValueError: if ``alpha`` or ``eps`` is out of range, for an unknown method or gradient, and for a method without
            inverse root; when called, as :func:`whiten_color`.

    Example:
        >>> layer = matroot.nn.WhitenColor(alpha=0.6)
        >>> layer(torch.randn(2, 4, 8, 8), torch.randn(2, 4, 6, 6)).shape
        torch.Size([2, 4, 8, 8])
    """

    def __init__(
        self,
        alpha: float = 0.6,
        learnable: bool = True,
        groups: int = 1,
        eps: float = 1e-5,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> None:
        super().__init__()
        require_blend(alpha)
        if learnable and not 0 < alpha < 1:
            raise ValueError(f"a learnable alpha must lie strictly between 0 and 1, got {alpha!r}; or learnable=False")
        require_eps(eps)
        validate(method, gradient, "both")
        self.initial_alpha, self.learnable, self.groups, self.eps = alpha, learnable, groups, eps
        self.method, self.gradient = method, gradient
        self.logit = nn.Parameter(torch.empty(())) if learnable else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The blend of the constructor."""
        if self.logit is not None:
            nn.init.constant_(self.logit, math.log(self.initial_alpha / (1 - self.initial_alpha)))

    @property
    def alpha(self) -> float | Tensor:
        """The current blend."""
        return self.initial_alpha if self.logit is None else torch.sigmoid(self.logit)

    def coloring(self, style: Tensor) -> Coloring:
        """What :func:`coloring` returns with the options of this layer, to be given to several like it.

        Args:
            style: (B, C, *spatial).

        Returns:
            Mean and root of the covariances.
        """
        return coloring(style, groups=self.groups, eps=self.eps, method=self.method, gradient=self.gradient)

    @one_node
    def forward(self, content: Tensor, style: Tensor | Coloring) -> Tensor:
        return whiten_color(
            content,
            style,
            alpha=self.alpha,
            groups=self.groups,
            eps=self.eps,
            method=self.method,
            gradient=self.gradient,
        )

    def extra_repr(self) -> str:
        return constructor_arguments(self, alpha=self.initial_alpha)


def require_blend(alpha: float | Tensor, name: str = "alpha") -> None:
    """Raise unless the blend, called so by the caller, is a tensor or in [0, 1]."""
    if not isinstance(alpha, Tensor) and not 0 <= alpha <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {alpha!r}")


def require_pair(content: Tensor, batch: int, channels: int) -> None:
    """Raise unless a style of this batch and channels suits the content (B, C, ...)."""
    if content.shape[1] != channels:
        raise ValueError(f"content has {content.shape[1]} channels and style {channels}; they must be equal")
    if batch not in (1, content.shape[0]):
        raise ValueError(f"style must have a batch of 1 or of content's {content.shape[0]}; got {batch}")


def _require_groups(channels: int, groups: int) -> None:
    if groups < 1 or channels % groups:
        raise ValueError(f"groups must divide the channels; got {groups} groups and {channels} channels")


def _grouped(x: Tensor, groups: int) -> Tensor:
    """(B, C, *spatial) -> (B, groups, C/groups, N)."""
    return x.unflatten(1, (groups, x.shape[1] // groups)).flatten(3)
