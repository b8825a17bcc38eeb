"""Transfer at several scales, the coarsest first: broad strokes, and the detail of the finest.

A network sees strokes of few pixels. In a picture of half the size they are twice as broad: what it paints there,
together with the detail that the smaller picture could not hold, is what is painted at the next scale.
"""

from collections.abc import Callable

from torch import Tensor

from .resizing import resized
from .tiled_transfer import Progress

SMALLEST = 32
"""Pixels of the shorter side; scales with fewer are left out."""

LARGE = 1024
"""Pixels of the longer side from which on there are two scales unless told, and twice as many three."""
MOST = 3
"""Scales unless told: with more, things lose their shapes."""

Transfer = Callable[[Tensor, Tensor, Progress], Tensor]
"""Of what a coarser scale made of pictures, the pictures themselves at that size, and the progress of this scale."""


def scales_for(height: int, width: int) -> int:
    """How many scales make strokes of about the same share of a large picture."""
    return min(MOST, max(1, 2 * max(height, width) // LARGE).bit_length())


def transfer_by_scales(content: Tensor, scales: int, transfer: Transfer, progress: Progress) -> Tensor:
    """``transfer`` of pictures (B, C, H, W) at 1, 1/2, 1/4 ... of their size, so many; the result has that of all."""
    sizes = [tuple(content.shape[-2:])]
    for k in range(1, scales):
        size = tuple(-(-side >> k) for side in sizes[0])
        if min(size) < SMALLEST:
            break
        sizes.append(size)
    areas = [height * width for height, width in sizes]

    def at(k: int) -> Tensor:
        return resized(content, sizes[k], "bicubic")

    def painted(k: int) -> Tensor:
        if k + 1 < len(sizes):
            # In place, and none kept: of a large picture each copy counts.
            x = resized(painted(k + 1).sub_(at(k + 1)), sizes[k], "bicubic").add_(at(k)).clamp_(0, 1)
        else:
            x = at(k)
        done, share = sum(areas[k + 1 :]) / sum(areas), areas[k] / sum(areas)
        return transfer(x, at(k), lambda fraction: progress(done + share * fraction))

    return painted(0)
