"""Batches of a data set whose pixels are all on the device, where they are augmented too."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor
from torch.nn import functional

from ..recipe import Augment
from .augment import Normalise, crop, crop_indices, erase_, memory_format, resize, resized_crop
from .geometry import padding, with_margin
from .order import Order
from .seeding import generator_for
from .split import InMemory
from .windows import corner_windows, erased_rectangles, flips, offset_windows, resized_windows


@dataclass(frozen=True)
class Augmentation:
    """What is done to the images of a split."""

    kind: Augment
    size: int
    """Pixels of the result."""
    erasing: float = 0.0


@dataclass(frozen=True)
class _Drawn:
    """What an epoch needs of chance, for all examples in its order."""

    examples: Tensor
    rows: Tensor | None = None
    columns: Tensor | None = None
    windows: Tensor | None = None
    mirrored: Tensor | None = None
    rectangles: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "_Drawn":
        tables = (self.rows, self.columns, self.windows, self.mirrored, self.rectangles)
        return _Drawn(change(self.examples), *(None if table is None else change(table) for table in tables))


class OnDevice:
    """Batches (see ``Batches``) that wait for nothing: an epoch's random numbers are drawn on the CPU at its start.

    The same numbers are drawn on every device. Clips are one image of many channels until they are returned.
    """

    def __init__(
        self,
        split: InMemory,
        order: Order,
        augmentation: Augmentation,
        normalise: Normalise,
        device: torch.device,
        seed: int,
        channels_last: bool = False,
    ) -> None:
        self._order, self._augmentation, self._normalise = order, augmentation, normalise
        self._device, self._seed, self._channels_last = device, seed, channels_last
        self._frames = split.pixels.shape[1] if split.pixels.ndim == 5 else None
        pixels = split.pixels
        if self._frames is not None:
            pixels = pixels.permute(0, 2, 3, 1, 4).flatten(3)
        self._side = pixels.shape[1]
        self._crop_side = min(self._side, augmentation.size)
        if self._pads():
            around = padding(self._side)
            pixels = functional.pad(pixels, (0, 0, around, around, around, around))
        self._pixels = pixels.to(device)
        self._labels = split.labels.to(device)

    def __len__(self) -> int:
        return len(self._order.parts)

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (B, C, H, W) or clips (B, T, C, H, W) and labels (B,)."""
        drawn = self._draw(generator_for(self._seed, number))
        for positions in self._order.parts:
            part = drawn.map(itemgetter(positions))
            yield self._images(part), self._labels[part.examples]

    def _pads(self) -> bool:
        """Crops need room: pixels beyond the network's size, otherwise black ones around."""
        return self._augmentation.kind in ("crop-flip", "shift") and self._side <= self._augmentation.size

    def _draw(self, generator: torch.Generator) -> _Drawn:
        kind, size, device = self._augmentation.kind, self._augmentation.size, self._device
        examples = self._order.permutation(generator).to(device)
        count = len(examples)
        padded = self._pixels.shape[1]
        rectangles = None
        if self._augmentation.erasing:
            rectangles = erased_rectangles(count, size, self._augmentation.erasing, generator).to(device)
        if kind in ("resized-crop-flip", "corner-crop-flip"):
            draw = resized_windows if kind == "resized-crop-flip" else corner_windows
            windows = draw(count, padded, padded, generator).to(device)
            mirrored = flips(count, generator).to(device)
            return _Drawn(examples, windows=windows, mirrored=mirrored, rectangles=rectangles)
        side = self._crop_side
        room = padded - side
        if kind == "none":
            middle = crop_indices(torch.full((count,), room // 2, device=device), side)
            return _Drawn(examples, middle, middle, rectangles=rectangles)
        top, left = offset_windows(count, (room, room), side, generator)[:, :2].to(device).unbind(1)
        mirrored = None if kind == "shift" else flips(count, generator).to(device)
        rows, columns = crop_indices(top, side), crop_indices(left, side, mirrored)
        return _Drawn(examples, rows, columns, rectangles=rectangles)

    def _images(self, part: _Drawn) -> Tensor:
        size = self._augmentation.size
        if part.rows is not None and part.columns is not None:
            images = crop(self._pixels, part.examples, part.rows, part.columns).permute(0, 3, 1, 2).float()
            images = resize(images, size)
        else:
            assert part.windows is not None
            assert part.mirrored is not None
            images = self._pixels[part.examples].permute(0, 3, 1, 2).float()
            images = resized_crop(images, part.windows, part.mirrored, size)
        if self._frames is not None:
            images = images.unflatten(1, (self._frames, -1))
        images = self._normalise(memory_format(images, self._channels_last))
        return images if part.rectangles is None else erase_(images, part.rectangles)


def shrink(split: InMemory, image_size: int) -> InMemory:
    """Images with no more pixels than crops of ``image_size`` need; larger ones are resized once."""
    *_, current, _, channels = split.pixels.shape
    side = with_margin(image_size)
    if current <= side:
        return split
    chunks = split.pixels.reshape(-1, current, current, channels).movedim(-1, 1).split(1024)
    pixels = torch.cat([resize(chunk, side) for chunk in chunks]).movedim(1, -1)
    return InMemory(pixels.reshape(*split.pixels.shape[:-3], side, side, channels), split.labels)
