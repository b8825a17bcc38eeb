"""Colours, and transparency, of pictures (*, C, H, W) in [0, 1]."""

import torch
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in what the eye sees as brightness, ITU-R BT.601."""


def luma(pictures: Tensor) -> Tensor:
    """(*, 3, H, W) -> (*, 1, H, W)."""
    red, green, blue = pictures.unbind(-3)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).unsqueeze(-3)


def with_colors_of(content: Tensor, painted: Tensor) -> Tensor:
    """The content's colours with the brightness of the painted picture; both (*, 3, H, W).

    The brightness is given the content's mean and standard deviation, so that a dark painting darkens nothing. The same
    is added to red, green and blue, which changes no colour difference, except where the result leaves [0, 1].
    """
    own, other = luma(content), luma(painted)
    mean, deviation = own.mean((-2, -1), keepdim=True), own.std((-2, -1), correction=0, keepdim=True)
    other_mean, other_deviation = other.mean((-2, -1), keepdim=True), other.std((-2, -1), correction=0, keepdim=True)
    # No gain from a flat picture, which is rounding.
    gain = deviation / other_deviation.clamp(min=1e-3)
    change = (other - other_mean) * gain + mean - own
    return (content + change).clamp_(0, 1)


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
    seen = alpha.sum((-2, -1), keepdim=True).clamp(min=torch.finfo(alpha.dtype).tiny)
    mean = (colors * alpha).sum((-2, -1), keepdim=True) / seen
    return torch.lerp(mean.expand_as(colors), colors, alpha), alpha
