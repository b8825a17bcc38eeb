"""Members of zip files."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from .images import decode_image


class Archive:
    """Several zip files read as one. DataError names the file and the member that is missing or corrupt."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.label = " + ".join(str(path) for path in paths)
        self._owner: dict[str, Path] = {}
        self._files: dict[Path, zipfile.ZipFile] = {}
        for path in paths:
            try:
                self._files[path] = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as error:
                raise DataError(f"{path}: not a whole zip file: {error}") from error
            self._owner |= dict.fromkeys(self._files[path].namelist(), path)

    def names(self) -> list[str]:
        """Members that are files, sorted."""
        return sorted(name for name in self._owner if not name.endswith("/"))

    def read(self, name: str) -> bytes:
        if name not in self._owner:
            raise DataError(f"{self.label}: {name} is missing")
        path = self._owner[name]
        try:
            return self._files[path].read(name)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{path}: {name} is corrupt: {error}") from error

    def pixels(self, name: str) -> np.ndarray:
        """An image, uint8 (H, W, 3)."""
        return np.asarray(decode_image(self.read(name), f"{self.label}: {name}"))

    def labels(self, name: str, classes: int) -> Tensor:
        """Labels below ``classes`` from a NumPy file, int64 (N,)."""
        try:
            labels = np.load(io.BytesIO(self.read(name)))
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{self.label}: {name} is not a NumPy file: {error}") from error
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise DataError(
                f"{self.label}: {name} is {labels.dtype} {labels.shape}, expected integers in one dimension"
            )
        if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
            raise DataError(
                f"{self.label}: {name} has labels {labels.min()} to {labels.max()}, expected 0 to {classes - 1}"
            )
        return torch.from_numpy(labels.astype(np.int64))

    def tiles(self, name: str, height: int, width: int) -> np.ndarray:
        """The images of a mosaic, row by row, uint8 (N, height, width, 3)."""
        mosaic = self.pixels(name)
        rows, columns = mosaic.shape[0] // height, mosaic.shape[1] // width
        if mosaic.shape[:2] != (rows * height, columns * width):
            size = f"{mosaic.shape[1]}x{mosaic.shape[0]}"
            raise DataError(f"{self.label}: {name} is {size} pixels, expected a mosaic of {width}x{height}")
        tiles = mosaic.reshape(rows, height, columns, width, 3).transpose(0, 2, 1, 3, 4)
        return tiles.reshape(-1, height, width, 3)
