"""Colours and transparency of pictures in [0, 1]."""

import torch
from torch import Tensor

from .statistics import Coloring, Moments, StyleStatistics
from .transforms import Whitening

COLOR_EPS = 1e-5
"""Added to the variances of colours: less than one level of 255, squared."""


def recolored(pictures: Tensor, like: Tensor) -> Tensor:
    """RGB pictures (B, 3, H, W) with the mean and covariance of the colours of others, (B or 1, 3, h, w).

    They are exact but for values that would leave [0, 1], which are clipped.
    """
    colors = StyleStatistics.of([Moments.of(like)], COLOR_EPS)
    transform = Coloring.between(Moments.of(pictures), colors.means[0], colors.roots[0], 1.0, COLOR_EPS, Whitening())
    return transform(pictures).clamp_(0, 1)


def split_alpha(pictures: Tensor) -> tuple[Tensor, Tensor | None]:
    """Grey, grey and alpha, RGB or RGBA (*, 1 to 4, H, W) -> RGB (*, 3, H, W) and alpha (*, 1, H, W) or None.

    Transparent parts take the mean colour of the rest: what is stored there was never seen, and would change the
    statistics of the picture. ValueError for other numbers of channels.
    """
    channels = pictures.shape[-3]
    if channels not in (1, 2, 3, 4):
        raise ValueError(f"a picture has 1 to 4 channels (grey or RGB, with alpha or without), got {channels}")
    colors = pictures[..., : 1 if channels < 3 else 3, :, :].expand(*pictures.shape[:-3], 3, -1, -1)
    if channels % 2:
        return colors, None
    alpha = pictures[..., -1:, :, :]
    # In float16 a sum over 256 x 256 pixels is infinite.
    wide = torch.promote_types(alpha.dtype, torch.float32)
    seen = alpha.sum((-2, -1), keepdim=True, dtype=wide).clamp(min=torch.finfo(wide).tiny)
    mean = (colors * alpha).sum((-2, -1), keepdim=True, dtype=wide) / seen
    return torch.lerp(mean.to(colors.dtype).expand_as(colors), colors, alpha), alpha
