"""Data sets as readers return them: pixels in memory, or files to read one by one."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .errors import DataError

Choose = Callable[[int], list[int]]
"""From the number of frames of a clip to the frames to read."""
Read = Callable[[Path, Choose], list[Image.Image]]
"""From a file or folder to its image, or to the chosen frames of its clip; DataError if it cannot be read."""

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class InMemory:
    """Square images or clips of equal size."""

    pixels: Tensor
    """uint8, images (N, H, W, C) or clips (N, T, H, W, C)."""
    labels: Tensor
    """int64 (N,)."""

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, index: int, choose: Choose) -> list[Image.Image]:
        """The image, or the frames of the clip."""
        frames = self.pixels[index].numpy()
        return [Image.fromarray(frame) for frame in (frames if frames.ndim == 4 else frames[None])]


@dataclass(frozen=True, init=False)
class Files:
    """Examples that are read when they are needed."""

    paths: np.ndarray
    """Bytes, one array: processes that are forked share it, while references to a list of names would copy it."""
    labels: Tensor
    """int64 (N,)."""
    reader: Read

    def __init__(self, examples: Sequence[tuple[Path, int]], reader: Read) -> None:
        object.__setattr__(self, "paths", np.array([os.fsencode(path) for path, _ in examples]))
        object.__setattr__(self, "labels", torch.tensor([label for _, label in examples]))
        object.__setattr__(self, "reader", reader)

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, index: int, choose: Choose) -> list[Image.Image]:
        """The image, or the chosen frames of the clip; DataError naming the file if it cannot be read."""
        return self.reader(Path(os.fsdecode(self.paths[index])), choose)


@dataclass(frozen=True)
class Resize:
    """What the recipe for fine-grained classes does before it cuts a square of the network's size."""

    ratio: float = 1.0
    """Pixels of the short side, as a multiple of the network's."""
    square: bool = False
    """Both sides get that many pixels."""


SHORT_SIDE = Resize()


@dataclass(frozen=True)
class DataSet:
    """Two splits and what the training loop must know of them."""

    train: InMemory | Files
    test: InMemory | Files
    num_classes: int
    clips: bool = False
    channels: int = 3
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    stand_in: str | None = None
    fine_grained: Resize = SHORT_SIDE


def stratified_split(labels: Tensor, test_share: float) -> tuple[Tensor, Tensor]:
    """Examples for training and test, int64: of every class the same share, chosen once and for all."""
    # The stream of RandomState is frozen: the split is the same with every version of NumPy.
    stream = np.random.RandomState(0)
    train, test = [], []
    for label in labels.unique().tolist():
        own = torch.nonzero(labels == label)[:, 0]
        own = own[torch.from_numpy(stream.permutation(len(own)))]
        count = round(len(own) * test_share)
        test.append(own[:count])
        train.append(own[count:])
    return torch.cat(train).sort().values, torch.cat(test).sort().values


def require_classes(found: int, expected: int | None, where: Path) -> None:
    """DataError if a data set of a known number of classes has another."""
    if expected is not None and found != expected:
        raise DataError(f"{where}: {found} classes, expected {expected}; folder, frames and videos take any number")
