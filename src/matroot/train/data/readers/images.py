"""Images, from files and from bytes."""

import io
from pathlib import Path

from PIL import Image

from ..errors import DataError
from ..split import Choose


def decode_image(data: bytes, name: str) -> Image.Image:
    """An RGB image; DataError with ``name`` if these bytes are none."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        # Pillow repeats the object it reads from, which tells nobody anything.
        reason = "no image format is recognised" if isinstance(error, Image.UnidentifiedImageError) else error
        raise DataError(f"{name}: cannot be read as an image: {reason}") from error


def read_image(path: Path, choose: Choose) -> list[Image.Image]:
    """The image of a file, as the single frame there is; DataError naming the file if it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return [decode_image(data, str(path))]
