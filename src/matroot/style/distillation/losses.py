"""How far a picture is from its content and from its style, seen with the teacher's features."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ..._tracing import autocast_disabled
from ...nn.covariance import covariance_of_deviations, deviations

EPS = 1e-5
"""Variance below which a feature counts as constant."""


def feature_distance(features: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Mean squared difference of features (B, C, H, W), averaged over the scales; a number, in float32."""
    return torch.stack(
        [functional.mse_loss(x.float(), y.float()) for x, y in zip(features, targets, strict=True)]
    ).mean()


def content_distance(features: Tensor, target: Tensor) -> Tensor:
    """1 - correlation of the channels of features (B, C, H, W) with the target's, twice, averaged by variance.

    The mean over images of sum_c v_c 2 (1 - r_c)/sum_c v_c, with the variances v_c of the target's channels: from 0 to
    4, and 2 for unrelated pictures. Means and variances of the features do not count: they are the style's. Channels
    that the content hardly uses do not count either.
    """
    X, Y = deviations(features.flatten(2))[0], deviations(target.flatten(2))[0]
    variance = Y.square().mean(-1, keepdim=True)
    difference = X / torch.sqrt(X.square().mean(-1, keepdim=True) + EPS) - Y / torch.sqrt(variance + EPS)
    weight = variance / (variance.sum(1, keepdim=True) + EPS)
    return (weight * difference.square()).sum(1).mean()


def style_distance(features: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Difference of the statistics of features (B, C, H, W), averaged over the scales; a number, in float32.

    At each scale the mean squared differences of the channels' means and of their standard deviations, and
    |C - T|^2/(|C|^2 + |T|^2) of the covariances C and T. The features and targets of a scale may differ in H and W.
    """
    return torch.stack([_statistics_distance(x, y) for x, y in zip(features, targets, strict=True)]).mean()


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference of neighbouring pixels of images (B, C, H, W)."""
    return images.diff(dim=-1).abs().mean() + images.diff(dim=-2).abs().mean()


def _statistics_distance(features: Tensor, target: Tensor) -> Tensor:
    with autocast_disabled(features):
        X, mean = deviations(features.flatten(2))
        Y, wanted_mean = deviations(target.flatten(2))
        C = covariance_of_deviations(X, correction=0, eps=EPS)
        T = covariance_of_deviations(Y, correction=0, eps=EPS)
        deviation, wanted_deviation = (M.diagonal(dim1=-2, dim2=-1).sqrt() for M in (C, T))
        moments = functional.mse_loss(mean, wanted_mean) + functional.mse_loss(deviation, wanted_deviation)
        # The scale is no part of the gradient: a picture must not come nearer by having more contrast.
        size = C.detach().square().sum((-2, -1)) + T.square().sum((-2, -1))
        return moments + ((C - T).square().sum((-2, -1)) / size).mean()
