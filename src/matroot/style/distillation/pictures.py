"""Pictures to train on: folders and zip files, decoded once and kept on the device."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ..._exif import upright
from ..._terminal import CommandError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
MARGIN = 4 / 3
"""Short side of stored pictures, at most, as a multiple of the crops'."""
LONGEST = 2
"""Long side of stored pictures, at most, as a multiple of their short side: the middle is kept."""


class PicturesError(CommandError):
    """What is wrong with a folder or a file of pictures."""


@dataclass(frozen=True)
class Pictures:
    """Pictures of several sizes, each in the upper left corner of (N, 3, H, W) uint8; its border is repeated beyond."""

    pixels: Tensor
    sizes: Tensor
    """Height and width of each picture, (N, 2), on the CPU."""

    def __len__(self) -> int:
        return len(self.pixels)

    def to(self, device: torch.device) -> "Pictures":
        """With the pixels on a device."""
        return Pictures(self.pixels.to(device), self.sizes)

    @classmethod
    def of(cls, pictures: Sequence[np.ndarray]) -> "Pictures":
        """From arrays (h, w, 3) of uint8."""
        sizes = torch.tensor([picture.shape[:2] for picture in pictures])
        height, width = sizes.amax(0).tolist()
        pixels = torch.empty(len(pictures), 3, height, width, dtype=torch.uint8)
        for own, picture in zip(pixels, pictures, strict=True):
            h, w = picture.shape[:2]
            padded = np.pad(picture, ((0, height - h), (0, width - w), (0, 0)), "edge")
            own.copy_(torch.from_numpy(padded).permute(2, 0, 1))
        return cls(pixels, sizes)


def read_pictures(sources: Sequence[str], crop: int) -> list[np.ndarray]:
    """All pictures of the sources in the order of their names, (h, w, 3); those larger than crops need are shrunk.

    sources: pictures; folders, searched through; zip files; or ``FILE.zip:NAME``, a folder or a picture of a zip file.

    PicturesError for a source that does not exist or has no picture, and for a picture that cannot be read.
    """
    largest = round(MARGIN * crop)
    return [_shrunk(picture, largest) for source in sources for picture in _read(source)]


def _read(source: str) -> Iterator[Image.Image]:
    count = 0
    for name, data in _files(source):
        try:
            picture = upright(Image.open(io.BytesIO(data))).convert("RGB")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise PicturesError(f"{name} cannot be read as a picture: {error}") from error
        count += 1
        yield picture
    if not count:
        raise PicturesError(f"{source} has no pictures; expected files ending in {', '.join(SUFFIXES)}")


def _files(source: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents."""
    path = Path(source)
    if path.is_dir():
        paths = sorted(file for file in path.rglob("*") if _is_picture(file.name))
    else:
        paths = [path] if path.is_file() and _is_picture(path.name) else []
    for file in paths:
        yield str(file), file.read_bytes()
    if not path.is_dir() and not paths:
        yield from _files_of_archive(source)


def _files_of_archive(source: str) -> Iterator[tuple[str, bytes]]:
    before, _, part = source.partition(".zip:")
    path, part = Path(f"{before}.zip" if part else source), part.strip("/")
    if not path.exists():
        raise PicturesError(f"there is no {path}; expected a picture, or a folder or a zip file of pictures")
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if _is_picture(name) and (not part or name == part or name.startswith(f"{part}/")):
                    yield f"{path}:{name}", archive.read(name)
    except (OSError, zipfile.BadZipFile) as error:
        raise PicturesError(f"{path} is no picture, no folder and no whole zip file: {error}") from error


def _is_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _shrunk(picture: Image.Image, largest: int) -> np.ndarray:
    """With a short side of at most ``largest`` and a long side of at most ``LONGEST`` times the short one."""
    short = min(picture.size)
    kept = tuple(min(side, LONGEST * short) for side in picture.size)
    left, top = ((side - keep) // 2 for side, keep in zip(picture.size, kept, strict=True))
    scale = min(1.0, largest / short)
    width, height = (max(1, round(scale * side)) for side in kept)
    box = (left, top, left + kept[0], top + kept[1])
    return np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS, box=box))
