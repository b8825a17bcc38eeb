"""Photos and paintings that are not paired: where they are found, and batches of them."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from ..._exif import upright
from ..data.errors import DataError
from ..data.places import Layout, find, places
from ..data.readers.archive import Archive
from ..data.readers.images import decode_image
from ..data.seeding import generator_for

MONET_FILE, UKIYOE_FILE = "monet2photo_256.zip", "ukiyoe.zip"
HELD_OUT = 10
"""One picture of so many is for tests, where a data set has no test folders."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True)
class File:
    """A picture that is not decoded yet."""

    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Files:
    """The pictures of a domain."""

    train: Sequence[File]
    test: Sequence[File]


@dataclass(frozen=True)
class Domain:
    """The pictures of a domain as bytes (N, 3, side, side), on one device."""

    train: Tensor
    test: Tensor


@dataclass(frozen=True)
class Pictures:
    """Both domains."""

    photos: Domain
    paintings: Domain
    source: str
    """The folder they were found in."""


def open_pictures(dataset: str, image_size: int, root: Path | None, device: torch.device) -> Pictures:
    """All pictures of a data set, decoded, upright, their middle square resized to ``image_size``, on the device.

    They are looked for where ``matroot.train.data`` looks. DataError if the data set is unknown, not found, has no
    pictures, or one that cannot be decoded.
    """
    if dataset not in LAYOUTS:
        raise DataError(f"unknown pictures {dataset}. There are {', '.join(LAYOUTS)}.")
    layout, folder = find(dataset, LAYOUTS[dataset], places(root), ORIGIN)
    photos, paintings = layout.read(folder)
    return Pictures(_domain(photos, image_size, device), _domain(paintings, image_size, device), str(folder))


def batch(domain: Tensor, seed: int, which: int, step: int, size: int) -> Tensor:
    """Pictures (size, 3, H, W) in [-1, 1] of step 0, 1, ...; each mirrored half of the time.

    domain: bytes (N, 3, H, W). which: a number for the domain, so that two of them are not in step. All follows
    from seed and step. Every pass over the pictures has an order of its own; a batch may end one and begin the next.
    """
    chosen = []
    for position in range(step * size, (step + 1) * size):
        passed, place = divmod(position, len(domain))
        chosen.append(_order(len(domain), seed, which, passed)[place])
    mirrored = torch.rand(size, generator=generator_for(seed, which, 1, step)) < 0.5
    # Without waiting for the steps before.
    indices, mirrored = (x.to(domain.device, non_blocking=True) for x in (torch.tensor(chosen), mirrored))
    images = as_network_input(domain[indices])
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


@lru_cache(maxsize=4)  # of two domains, each with a pass that ends and one that begins
def _order(count: int, seed: int, which: int, passed: int) -> tuple[int, ...]:
    """The order of the pictures in a pass."""
    return tuple(torch.randperm(count, generator=generator_for(seed, which, 0, passed)).tolist())


def as_network_input(pixels: Tensor) -> Tensor:
    """Bytes to float32 in [-1, 1]."""
    return pixels.float() / 127.5 - 1


def as_unit_range(images: Tensor) -> Tensor:
    """Images of the network, in [-1, 1], to float32 in [0, 1]."""
    return images.float().add(1).div(2).clamp(0, 1)


def _domain(files: Files, side: int, device: torch.device) -> Domain:
    return Domain(_decode(files.train, side).to(device), _decode(files.test, side).to(device))


def _decode(files: Sequence[File], side: int) -> Tensor:
    """(N, 3, side, side) uint8."""

    def square(file: File) -> np.ndarray:
        image = upright(decode_image(file.read(), file.name))
        return np.asarray(ImageOps.fit(image, (side, side), Image.Resampling.BICUBIC))

    # Decoding leaves Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pixels = list(pool.map(square, files))
    return torch.from_numpy(np.stack(pixels)).movedim(-1, 1).contiguous()


def _read_folders(paintings: str, photos: str, tests: tuple[str, str] | None, folder: Path) -> tuple[Files, Files]:
    """Photos and paintings in folders of these names; ``tests`` are those of both test splits."""
    of_paintings, of_photos = (_in_folder(folder / name) for name in (paintings, photos))
    if tests is not None and all((folder / name).is_dir() for name in tests):
        test_paintings, test_photos = (_in_folder(folder / name) for name in tests)
        return Files(of_photos, test_photos), Files(of_paintings, test_paintings)
    return _held_out(of_photos, folder / photos), _held_out(of_paintings, folder / paintings)


def _in_folder(folder: Path) -> list[File]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as error:
        raise DataError(f"{folder}: expected a folder of pictures: {error.strerror}") from error
    if not paths:
        raise DataError(f"{folder}: expected pictures ({', '.join(SUFFIXES)}), found none")
    return [File(str(path), partial(_read_file, path)) for path in paths]


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def _read_zips(paintings: tuple[str, str], folder: Path) -> tuple[Files, Files]:
    """Paintings from a zip file and a folder within it, photos from the file that has them beside Monet's paintings."""
    return _in_zip(folder / MONET_FILE, "photo"), _in_zip(folder / paintings[0], paintings[1])


def _in_zip(path: Path, within: str) -> Files:
    archive = Archive([path])
    names = [name for name in archive.names() if name.startswith(f"{within}/")]
    files = [File(f"{path}: {name}", partial(archive.read, name)) for name in names]
    return _held_out(files, path / within)


def _held_out(files: Sequence[File], where: Path) -> Files:
    if len(files) < 2:
        raise DataError(f"{where}: expected two pictures at least, found {len(files)}")
    test = [file for k, file in enumerate(files) if k % HELD_OUT == HELD_OUT - 1] or list(files[-1:])
    return Files([file for file in files if file not in test], test)


_Reader = tuple[Files, Files]
_CYCLEGAN = partial(_read_folders, "trainA", "trainB", ("testA", "testB"))


def _cyclegan(name: str) -> Layout[_Reader]:
    return Layout(("trainA", "trainB"), _CYCLEGAN, (name,))


LAYOUTS: dict[str, tuple[Layout[_Reader], ...]] = {
    "monet2photo": (
        _cyclegan("monet2photo"),
        Layout((MONET_FILE,), partial(_read_zips, (MONET_FILE, "monet"))),
    ),
    "ukiyoe2photo": (
        _cyclegan("ukiyoe2photo"),
        Layout((UKIYOE_FILE, MONET_FILE), partial(_read_zips, (UKIYOE_FILE, "ukiyoe"))),
    ),
    "cezanne2photo": (_cyclegan("cezanne2photo"),),
    "vangogh2photo": (_cyclegan("vangogh2photo"),),
    "folder": (
        Layout(("trainA", "trainB"), _CYCLEGAN),
        Layout(("paintings", "photos"), partial(_read_folders, "paintings", "photos", None)),
    ),
}
"""Forms of each data set; A are paintings and B photos, as CycleGAN has it."""
ORIGIN = (
    "The sets of CycleGAN have paintings in trainA and testA, photos in trainB and testB. --dataset folder takes "
    "folders of one's own."
)
