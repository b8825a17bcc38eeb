"""Pictures of any size: rectangles of them, and moments merged over rectangles.

A tile is computed with as much of the picture around it as can change it, so it comes out as from the whole picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .statistics import Moments

ALIGNMENT = 4
"""Tiles begin at multiples of the stride of the deepest features."""


@dataclass(frozen=True)
class Tile:
    """A rectangle of a picture, in pixels; bottom and right are the first row and column outside."""

    top: int
    left: int
    bottom: int
    right: int

    def of(self, x: Tensor, stride: int = 1) -> Tensor:
        """This part of a picture or of features at a stride, (B, C, H, W); a view."""
        rows = slice(self.top // stride, -(-self.bottom // stride))
        return x[..., rows, self.left // stride : -(-self.right // stride)]

    def widened(self, context: int, height: int, width: int) -> "Tile":
        """With so much more on all sides, as far as the picture goes."""
        return Tile(
            max(self.top - context, 0),
            max(self.left - context, 0),
            min(self.bottom + context, height),
            min(self.right + context, width),
        )

    def inside(self, outer: "Tile") -> "Tile":
        """The same rectangle in the coordinates of one that contains it."""
        return Tile(self.top - outer.top, self.left - outer.left, self.bottom - outer.top, self.right - outer.left)


def tiles(height: int, width: int, size: int) -> list[Tile]:
    """Rectangles of at most size x size, rounded up to multiples of ``ALIGNMENT``, that cover a picture once."""
    if size < 1:
        raise ValueError(f"a tile must have at least one pixel, got {size}")
    size = -(-size // ALIGNMENT) * ALIGNMENT

    def edges(length: int) -> Iterator[tuple[int, int]]:
        return ((start, min(start + size, length)) for start in range(0, length, size))

    return [Tile(top, left, bottom, right) for top, bottom in edges(height) for left, right in edges(width)]


class MergedMoments:
    """Moments of all features that were added, as if of one map; merged in float64."""

    def __init__(self) -> None:
        self._positions = 0
        # Numbers on the CPU go with tensors of any device.
        self._mean = self._scatter = self._count = torch.zeros((), dtype=torch.float64, device="cpu")
        self._dtype = torch.float32

    def add(self, features: Tensor, counts: Tensor | None = None) -> None:
        """Add the positions of (B, C, H, W), or as much as each counts, see :meth:`Moments.of`."""
        part = Moments.of(features, counts)
        positions = features.shape[2] * features.shape[3]
        each = 1.0 if counts is None else counts.double().mean((-2, -1)).unsqueeze(-1)
        mean, covariance = part.mean.double(), part.covariance.double()
        # The scatter of a union is that of both parts, and that of their means about the common one.
        count = positions * each
        total = self._count + count
        distance = mean - self._mean
        self._scatter = self._scatter + covariance * ((positions - 1) * each)
        if self._positions:
            self._scatter = self._scatter + (self._count * count / total) * (distance @ distance.mT)
        self._mean = self._mean + distance * (count / total)
        self._positions, self._count, self._dtype = self._positions + positions, total, part.mean.dtype

    def moments(self) -> Moments:
        """Of everything added so far, in the dtype of :meth:`Moments.of`."""
        covariance = self._scatter / self._count * (self._positions / max(self._positions - 1, 1))
        return Moments(self._mean.to(self._dtype), covariance.to(self._dtype))
