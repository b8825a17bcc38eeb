"""Augmentation of single images and clips, in the processes that read them."""

from typing import Any

import torch
from PIL import Image, ImageOps
from torch import Tensor

from ...models import _torchvision as _torchvision

# isort: split
from torchvision.transforms.v2 import functional

from ..recipe import Augment
from .errors import DataError
from .geometry import padding, with_margin
from .seeding import seeded_globals
from .split import Resize
from .windows import corner_windows, flips, offset_windows, resized_windows

Frames = list[Any]
"""Pillow's images, which the annotations of torchvision do not name."""


class Evaluation:
    """The middle square of every frame, or several along the longer side: all frames of the first, then the next."""

    def __init__(self, size: int, before: Resize | None, crops: int = 1) -> None:
        self._size, self._before, self._crops = size, before, crops

    def __call__(self, frames: Frames, generator: torch.Generator) -> Tensor:
        """uint8 (crops T, C, size, size)."""
        if self._before is None:
            frames = [functional.resize(frame, [with_margin(self._size)]) for frame in frames]
        else:
            frames = _resize_before(frames, self._size, self._before)
        if self._crops == 1:
            return _stack([functional.center_crop(frame, [self._size, self._size]) for frame in frames])
        return _stack([self._crop(frame, k) for k in range(self._crops) for frame in frames])

    def _crop(self, frame: Any, k: int) -> Any:
        """The k-th square, from one end of the longer side to the other, in the middle of the shorter."""
        along, across = k / (self._crops - 1), 0.5
        tall = frame.height > frame.width
        down, right = (along, across) if tall else (across, along)
        top, left = round(down * (frame.height - self._size)), round(right * (frame.width - self._size))
        return functional.crop(frame, top, left, self._size, self._size)


class Training:
    """The same random window and mirroring for all frames of an example, then timm's RandAugment."""

    def __init__(self, kind: Augment, size: int, before: Resize, rand_augment: Any | None) -> None:
        self._kind, self._size, self._before = kind, size, before
        self._rand_augment = rand_augment

    def __call__(self, frames: Frames, generator: torch.Generator) -> Tensor:
        """uint8 (T, C, size, size)."""
        if self._kind == "none":
            return self._middle(self._apply_rand_augment(frames, generator), generator)
        frames, window = self._choose(frames, generator)
        top, left, height, width = window.tolist()
        size = [self._size, self._size]
        frames = [functional.resized_crop(frame, top, left, height, width, size) for frame in frames]
        if self._kind != "shift" and flips(1, generator).item():
            frames = [functional.horizontal_flip(frame) for frame in frames]
        return _stack(self._apply_rand_augment(frames, generator))

    def _middle(self, frames: Frames, generator: torch.Generator) -> Tensor:
        """As evaluation; images without a margin are not enlarged to have one, as in memory."""
        side = min(frames[0].size)
        before = Resize(max(1, side / self._size)) if side <= with_margin(self._size) else None
        return Evaluation(self._size, before)(frames, generator)

    def _choose(self, frames: Frames, generator: torch.Generator) -> tuple[Frames, Tensor]:
        """Frames, resized or padded, and the window (4,) of them."""
        if self._kind in ("resized-crop-flip", "corner-crop-flip"):
            draw = resized_windows if self._kind == "resized-crop-flip" else corner_windows
            width, height = frames[0].size
            return frames, draw(1, height, width, generator)[0]
        frames, side = self._make_room(frames)
        width, height = frames[0].size
        return frames, offset_windows(1, (height - side, width - side), side, generator)[0]

    def _make_room(self, frames: Frames) -> tuple[Frames, int]:
        """Frames with room for crops, and the side of these, as for images in memory."""
        if self._kind == "finegrained":
            return _resize_before(frames, self._size, self._before), self._size
        side = min(frames[0].size)
        if side > with_margin(self._size):
            return [functional.resize(frame, [with_margin(self._size)]) for frame in frames], self._size
        if side > self._size:
            return frames, self._size
        return [functional.pad(frame, [padding(side)]) for frame in frames], side

    def _apply_rand_augment(self, frames: Frames, generator: torch.Generator) -> Frames:
        if self._rand_augment is None:
            return frames
        seed = int(torch.randint(2**31, (), generator=generator))
        changed = []
        for frame in frames:
            with seeded_globals(seed):
                changed.append(self._rand_augment(frame))
        return changed


def rand_augment(description: str, size: int, mean: tuple[float, ...]) -> Any:
    """timm's RandAugment of one image; DataError if it does not understand the description."""
    from timm.data.auto_augment import rand_augment_transform

    colour = tuple(min(255, round(255 * channel)) for channel in mean)
    try:
        changes = rand_augment_transform(description, {"translate_const": int(size * 0.45), "img_mean": colour})
    except (AssertionError, KeyError, ValueError, IndexError) as error:
        raise DataError(
            f"rand_augment {description!r} is unknown to timm, expected such as rand-m9-mstd0.5-inc1"
        ) from error
    for change in changes.ops:
        if change.name.startswith("Posterize"):
            change.aug_fn = _posterize
    return changes


def _posterize(image: Image.Image, bits: int, **_: Any) -> Image.Image:
    """timm asks for 0 bits at its largest magnitude, a black image, which newer versions of Pillow refuse."""
    if bits >= 8:
        return image
    return ImageOps.posterize(image, bits) if bits > 0 else Image.new(image.mode, image.size)


def _resize_before(frames: Frames, size: int, before: Resize) -> Frames:
    side = round(size * before.ratio)
    return [functional.resize(frame, [side, side] if before.square else [side]) for frame in frames]


def _stack(frames: Frames) -> Tensor:
    return torch.stack([functional.pil_to_tensor(frame) for frame in frames])
