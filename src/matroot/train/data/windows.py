"""Random rectangles of images, for many images at a time.

A rectangle is a row (top, left, height, width) in pixels, int64.
"""

import math

import torch
from torch import Tensor

AREAS = (0.08, 1.0)
"""Of a resized crop, as a share of the image."""
ASPECTS = (3 / 4, 4 / 3)
TRIALS = 10
"""Of rectangles that do not fit; then the largest square in the middle is taken, as torchvision does."""

CORNER_SCALES = (1.0, 0.875, 0.75, 0.66)
"""Sides of a corner crop, as a share of the short side."""

ERASED_AREAS = (0.02, 0.33)
ERASED_ASPECTS = (0.3, 3.3)


def offset_windows(count: int, room: tuple[int, int], side: int, generator: torch.Generator) -> Tensor:
    """Squares of ``side`` pixels that begin 0 to ``room`` pixels from top and left, (count, 4)."""
    offsets = [torch.randint(most + 1, (count,), generator=generator) for most in room]
    return torch.stack([*offsets, *torch.full((2, count), side)], dim=1)


def resized_windows(count: int, height: int, width: int, generator: torch.Generator) -> Tensor:
    """Uniform area and log-uniform aspect, anywhere inside, (count, 4)."""
    heights, widths = _sides((count, TRIALS), height * width, AREAS, ASPECTS, generator)
    fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
    first = fits.long().argmax(dim=1, keepdim=True)
    fitting = fits.any(dim=1)
    side = min(height, width)
    heights = torch.where(fitting, heights.gather(1, first)[:, 0], side)
    widths = torch.where(fitting, widths.gather(1, first)[:, 0], side)
    top, left = _anywhere(height - heights, generator), _anywhere(width - widths, generator)
    top = torch.where(fitting, top, (height - side) // 2)
    left = torch.where(fitting, left, (width - side) // 2)
    return torch.stack([top, left, heights, widths], dim=1)


def corner_windows(count: int, height: int, width: int, generator: torch.Generator) -> Tensor:
    """One of the four corners or the middle; both sides of ``CORNER_SCALES``, at most one scale apart, (count, 4)."""
    sides = torch.tensor([int(min(height, width) * scale) for scale in CORNER_SCALES])
    pairs = [(first, second) for first in range(len(sides)) for second in range(len(sides)) if abs(first - second) <= 1]
    chosen = torch.tensor(pairs)[torch.randint(len(pairs), (count,), generator=generator)]
    heights, widths = sides[chosen[:, 0]], sides[chosen[:, 1]]
    # Halves of what is left above and beside.
    positions = torch.tensor([(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)])
    place = positions[torch.randint(len(positions), (count,), generator=generator)]
    top, left = (height - heights) * place[:, 0] // 2, (width - widths) * place[:, 1] // 2
    return torch.stack([top, left, heights, widths], dim=1)


def erased_rectangles(count: int, size: int, probability: float, generator: torch.Generator) -> Tensor:
    """A rectangle inside a square of ``size`` pixels with this probability, otherwise an empty one, (count, 4)."""
    erased = torch.rand(count, generator=generator) < probability
    heights, widths = _sides((count,), size * size, ERASED_AREAS, ERASED_ASPECTS, generator)
    heights, widths = heights.clamp(1, size), widths.clamp(1, size)
    top, left = _anywhere(size - heights, generator), _anywhere(size - widths, generator)
    return torch.stack([top, left, heights * erased, widths * erased], dim=1)


def flips(count: int, generator: torch.Generator) -> Tensor:
    """Which images are mirrored, bool (count,)."""
    return torch.rand(count, generator=generator) < 0.5


def _sides(
    shape: tuple[int, ...],
    pixels: int,
    areas: tuple[float, float],
    aspects: tuple[float, float],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    area = pixels * (areas[0] + (areas[1] - areas[0]) * torch.rand(shape, generator=generator))
    low, high = math.log(aspects[0]), math.log(aspects[1])
    aspect = torch.exp(low + (high - low) * torch.rand(shape, generator=generator))
    return (area / aspect).sqrt().round().long(), (area * aspect).sqrt().round().long()


def _anywhere(room: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform in 0, ..., room."""
    drawn = (torch.rand(room.shape, generator=generator) * (room + 1)).long()
    return drawn.minimum(room)
