"""What varies less than noise, such as a clear sky: what a transfer must not make of it.

It is smoothed before, as noise would be amplified; it hardly counts in the statistics; and what the transfer changes
there is smoothed, as edges nearby leave rings.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from .tiles import tiles

GRAIN = 4.0
"""Levels of 255: more than film grain and the blocks of JPEG in clear skies, less than what one sees as texture."""
RADIUS = 4
"""Of the windows in pixels: they are larger than a block of JPEG."""
LEAST = 1e-3
"""What a pixel without any variation around it counts, so that a picture without any has statistics."""


def without_grain(pictures: Tensor, levels: float, share: float = 1.0, *, tile: int) -> Tensor:
    """Pictures (B, 3, H, W) in [0, 1] without the variation in flat areas, edges as they were.

    A guided filter with the picture as its own guide: in each window the least squares fit of the picture by a x + b,
    with a = v/(v + e) for the variance v of the window, averaged over red, green and blue, and e = (levels/255)^2;
    fits of all windows around a pixel are averaged.

    levels: standard deviation of which half is left; ValueError if it is negative or not finite. share: of the
    smoothed picture in the result. tile: side of the parts that are computed at once.
    """
    _require_levels(levels)
    if levels == 0 or share == 0:
        return pictures

    def filtered(x: Tensor) -> Tensor:
        a, mean = _share_kept(x, levels)
        return torch.lerp(x, _window_means(a) * x + _window_means((1 - a) * mean), share)

    # Windows reach as far again as the windows around a pixel.
    return _by_tiles(filtered, torch.empty_like(pictures), 2 * RADIUS, tile, pictures)


def importance(pictures: Tensor, levels: float, *, tile: int) -> Tensor | None:
    """How much each pixel of pictures (B, 3, H, W) counts in their statistics, (B, 1, H, W); None for levels 0.

    v/(v + e) of :func:`without_grain`, and ``LEAST`` where that is less: a clear sky counts for little, however large
    it is. ValueError for levels that are negative or not finite.
    """
    _require_levels(levels)
    if levels == 0:
        return None
    wide = torch.promote_types(pictures.dtype, torch.float32)
    counts = torch.empty_like(pictures[:, :1], dtype=wide, memory_format=torch.contiguous_format)
    return _by_tiles(lambda x: _share_kept(x, levels)[0].clamp_(min=LEAST), counts, RADIUS, tile, pictures)


def without_rings(painted: Tensor, pictures: Tensor, levels: float, share: float = 1.0, *, tile: int) -> Tensor:
    """What was made of pictures (B, 3, H, W), the change smoothed where they are flat.

    a d + (1 - a) m of the change d, with a of :func:`without_grain` averaged over windows, and with the means m of d
    over windows twice as large, in which a pixel counts (1 - a)^2: flat areas keep their colours apart, and edges next
    to them have no part in it.

    levels, share, tile: see :func:`without_grain`.
    """
    _require_levels(levels)
    if levels == 0 or share == 0:
        return painted

    def smoothed(painted: Tensor, x: Tensor) -> Tensor:
        flat = 1 - _window_means(_share_kept(x, levels)[0])
        count, change = flat.square() + LEAST, painted - x
        mean = _window_means(change * count, 2 * RADIUS) / _window_means(count, 2 * RADIUS)
        return painted + share * flat * (mean - change)

    return _by_tiles(smoothed, torch.empty_like(painted), 4 * RADIUS, tile, painted, pictures).clamp_(0, 1)


def _require_levels(levels: float) -> None:
    if not 0 <= levels < math.inf:
        raise ValueError(f"grain must be a number of levels from 0 on, got {levels}")


def _by_tiles(function: Callable[..., Tensor], result: Tensor, context: int, tile: int, *pictures: Tensor) -> Tensor:
    """``result``, filled with a function of pictures, in float32 at least, that sees so many pixels around each."""
    height, width = result.shape[2:]
    for core in tiles(height, width, tile):
        outer = core.widened(context, height, width)
        parts = (outer.of(x).to(torch.promote_types(x.dtype, torch.float32)) for x in pictures)
        core.of(result).copy_(core.inside(outer).of(function(*parts)))
    return result


def _share_kept(x: Tensor, levels: float) -> tuple[Tensor, Tensor]:
    """a of the windows around all pixels, and their means."""
    mean = _window_means(x)
    variance = (_window_means(x.square()) - mean.square()).mean(1, keepdim=True).clamp_(min=0)
    return variance / (variance + (levels / 255) ** 2), mean


def _window_means(x: Tensor, radius: int = RADIUS) -> Tensor:
    """Means over squares, cut off where the picture ends; by rows and columns, which is the same."""
    for window, padding in (((2 * radius + 1, 1), (radius, 0)), ((1, 2 * radius + 1), (0, radius))):
        x = functional.avg_pool2d(x, window, 1, padding, count_include_pad=False)
    return x
