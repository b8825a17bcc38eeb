"""CIFAR-10 and CIFAR-100, as torchvision unpacks them and packed as mosaics."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ....models import _torchvision as _torchvision

# isort: split
from torchvision.datasets import CIFAR10
from torchvision.datasets.utils import check_integrity

from ..errors import DataError
from ..split import DataSet, InMemory
from .archive import Archive

MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2023, 0.1994, 0.2010)
SIDE = 32


@dataclass(frozen=True)
class PublishedCifar:
    """torchvision's folder; DataError names a file whose checksum is not the published one."""

    kind: type[CIFAR10]
    classes: int

    def __call__(self, folder: Path) -> DataSet:
        if folder.name != self.kind.base_folder:
            raise DataError(f"{folder}: expected the name {self.kind.base_folder}")
        meta = (self.kind.meta["filename"], self.kind.meta["md5"])
        for name, md5 in (*self.kind.train_list, *self.kind.test_list, meta):
            if not check_integrity(folder / name, md5):
                state = "is not the published file (md5 differs)" if (folder / name).exists() else "is missing"
                raise DataError(f"{folder}: {name} {state}, expected md5 {md5}")
        splits = [self._split(folder, train) for train in (True, False)]
        return DataSet(*splits, num_classes=self.classes, mean=MEAN, std=STD)

    def _split(self, folder: Path, train: bool) -> InMemory:
        read = self.kind(folder.parent, train=train, download=False)
        return InMemory(torch.from_numpy(read.data), torch.tensor(read.targets))


@dataclass(frozen=True)
class CifarMosaics:
    """Zip files of WebP mosaics in the published order, with labels as NumPy files.

    ``scale.json`` says by how much pixels are to be multiplied, where they are not stored whole.
    """

    files: tuple[str, ...]
    classes: int

    def __call__(self, folder: Path) -> DataSet:
        archive = Archive([folder / name for name in self.files])
        step = self._step(archive)
        return DataSet(
            train=self._split(archive, "train", step),
            test=self._split(archive, "test", step),
            num_classes=self.classes,
            mean=MEAN,
            std=STD,
            stand_in=None if step == 1 else f"Pixels of CIFAR-{self.classes} are rounded to multiples of {step}.",
        )

    def _step(self, archive: Archive) -> int:
        if "scale.json" not in archive.names():
            return 1
        try:
            return int(json.loads(archive.read("scale.json"))["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f'{archive.label}: scale.json is unreadable, expected {{"step": number}}') from error

    def _split(self, archive: Archive, split: str, step: int) -> InMemory:
        names = [name for name in archive.names() if re.fullmatch(rf"{split}_\d+\.webp", name)]
        names.sort(key=lambda name: int(name[len(split) + 1 : -len(".webp")]))
        labels = archive.labels(f"{split}_labels.npy", self.classes)
        tiles = [archive.tiles(name, SIDE, SIDE) for name in names]
        count = sum(map(len, tiles))
        if count != len(labels) or not count:
            held = f"{', '.join(names) or 'no mosaic'} with {count} images"
            raise DataError(f"{archive.label}: {split}_labels.npy has {len(labels)} labels, but there is {held}")
        pixels = np.concatenate(tiles)
        if step != 1:
            pixels = np.minimum(255, np.arange(256) * step).astype(np.uint8)[pixels]
        return InMemory(torch.from_numpy(pixels), labels)
