"""What varies less than noise: smoothed before a transfer, which would amplify it."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from .tiles import tiles

GRAIN = 4.0
"""Levels of 255: more than film grain and the blocks of JPEG in clear skies, less than what one sees as texture."""
RADIUS = 4
"""Of the windows in pixels: they are larger than a block of JPEG."""


def without_grain(pictures: Tensor, levels: float, share: float = 1.0, *, tile: int) -> Tensor:
    """Pictures (B, 3, H, W) in [0, 1] without the variation in flat areas, edges as they were.

    A guided filter with the picture as its own guide: in each window the least squares fit of the picture by a x + b,
    with a = v/(v + e) for the variance v of the window, averaged over red, green and blue, and e = (levels/255)^2;
    fits of all windows around a pixel are averaged.

    levels: standard deviation of which half is left; ValueError if it is negative or not finite. share: of the
    smoothed picture in the result. tile: side of the parts that are computed at once.
    """
    if not 0 <= levels < math.inf:
        raise ValueError(f"grain must be a number of levels from 0 on, got {levels}")
    if levels == 0 or share == 0:
        return pictures
    height, width = pictures.shape[2:]
    smooth = torch.empty_like(pictures)
    for core in tiles(height, width, tile):
        # Windows reach as far again as the windows around a pixel.
        outer = core.widened(2 * RADIUS, height, width)
        part = outer.of(pictures).to(torch.promote_types(pictures.dtype, torch.float32))
        found = torch.lerp(part, _filtered(part, (levels / 255) ** 2), share)
        core.of(smooth).copy_(core.inside(outer).of(found))
    return smooth


def _filtered(x: Tensor, e: float) -> Tensor:
    mean = _window_means(x)
    variance = (_window_means(x.square()) - mean.square()).mean(1, keepdim=True).clamp_(min=0)
    a = variance / (variance + e)
    return _window_means(a) * x + _window_means((1 - a) * mean)


def _window_means(x: Tensor) -> Tensor:
    """Means over squares, cut off where the picture ends; by rows and columns, which is the same."""
    for window, padding in (((2 * RADIUS + 1, 1), (RADIUS, 0)), ((1, 2 * RADIUS + 1), (0, RADIUS))):
        x = functional.avg_pool2d(x, window, 1, padding, count_include_pad=False)
    return x
