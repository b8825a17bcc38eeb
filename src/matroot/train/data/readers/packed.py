"""Class folders inside a zip file, small enough for memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from ..errors import DataError
from ..split import DataSet, InMemory, require_classes
from .archive import Archive
from .images import decode_image


@dataclass(frozen=True)
class PackedFolders:
    """``train/<class>/<image>`` and ``<test>/<class>/<image>``; the centre square of each, ``side`` pixels wide."""

    file: str
    test: str
    side: int
    classes: int
    stand_in: str

    def __call__(self, folder: Path) -> DataSet:
        archive = Archive([folder / self.file])
        members = [name.split("/") for name in archive.names() if name.count("/") == 2]
        names = sorted({member[1] for member in members})
        require_classes(len(names), self.classes, folder / self.file)
        return DataSet(
            train=self._split(archive, members, "train", names),
            test=self._split(archive, members, self.test, names),
            num_classes=len(names),
            stand_in=self.stand_in,
        )

    def _split(self, archive: Archive, members: list[list[str]], split: str, names: list[str]) -> InMemory:
        own = ["/".join(member) for member in members if member[0] == split]
        labels = [names.index(name.split("/")[1]) for name in own]
        if missing := set(range(len(names))) - set(labels):
            raise DataError(f"{archive.label}: {split}/{names[min(missing)]} has no images")
        pixels = np.stack([self._square(archive, name) for name in own])
        return InMemory(torch.from_numpy(pixels), torch.tensor(labels))

    def _square(self, archive: Archive, name: str) -> np.ndarray:
        image = decode_image(archive.read(name), f"{archive.label}: {name}")
        if image.size != (self.side, self.side):
            image = ImageOps.fit(image, (self.side, self.side), Image.Resampling.BILINEAR)
        return np.asarray(image)
