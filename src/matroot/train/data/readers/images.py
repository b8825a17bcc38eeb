"""Images, from files and from bytes."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from ..errors import DataError
from ..split import Choose


def decode_image(data: bytes, name: str) -> Image.Image:
    """An RGB image, of 16 bits the upper 8; DataError with ``name`` if these bytes are none."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _eight_bits(image).convert("RGB")
    except MemoryError:
        raise
    # A damaged file can make a decoder raise anything.
    except Exception as error:
        # Pillow repeats the object it reads from, which tells nobody anything.
        reason = "no image format is recognised" if isinstance(error, Image.UnidentifiedImageError) else error
        raise DataError(f"{name}: cannot be read as an image: {reason}") from error


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits, which Pillow would cut off at 255, brought to 8; other images as they are."""
    if not image.mode.startswith("I"):
        return image
    # Pillow has no integers of 32 bits but for these.
    levels = np.asarray(image.convert("I")).clip(0, 65535)
    return Image.fromarray((levels >> 8).astype(np.uint8))


def read_image(path: Path, choose: Choose) -> list[Image.Image]:
    """The image of a file, as the single frame there is; DataError naming the file if it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return [decode_image(data, str(path))]
