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

Transfer = Callable[[Tensor, Tensor, Progress], Tensor]
"""Of what a coarser scale made of pictures, the pictures themselves at that size, and the progress of this scale."""


def transfer_by_scales(content: Tensor, scales: int, transfer: Transfer, progress: Progress) -> Tensor:
    """``transfer`` of pictures (B, C, H, W) at 1, 1/2, 1/4 ... of their size, so many; the result has that of all."""
    sizes = [tuple(content.shape[-2:])]
    for k in range(1, scales):
        size = tuple(-(-side >> k) for side in sizes[0])
        if min(size) < SMALLEST:
            break
        sizes.append(size)
    areas = [height * width for height, width in sizes]
    painted, change = content, None
    for k, size in reversed([*enumerate(sizes)]):
        pictures = resized(content, size, "bicubic")
        # In place: of a large picture each copy counts.
        x = pictures if change is None else resized(change, size, "bicubic").add_(pictures).clamp_(0, 1)
        done, share = sum(areas[k + 1 :]) / sum(areas), areas[k] / sum(areas)
        painted = transfer(x, pictures, lambda fraction, done=done, share=share: progress(done + share * fraction))
        if k > 0:
            change = painted.sub_(pictures)
    return painted
