"""Image files as tensors, and back."""

import io
import stat
import warnings
from pathlib import Path

import torch
from PIL import Image, ImageCms, UnidentifiedImageError
from torch import Tensor

from .._exif import upright
from .._files import write_whole
from .._terminal import CommandError

MAX_PIXELS = 100_000_000
Image.init()
READABLE = tuple(
    format
    for format in ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TGA", "TIFF", "WEBP")
    if format in Image.OPEN
)
"""Formats of pixels alone that this Pillow knows; for some others it runs programs."""
WRITABLE = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
QUALITY = 93
"""Of JPEG and WebP."""


class ImageError(CommandError):
    """What is wrong with an image file; the message names it."""


def read(path: Path | str, max_pixels: int = MAX_PIXELS) -> Tensor:
    """An image file as a picture.

    The picture is upright, as its EXIF data say, and its colours are those of sRGB if it has a profile. Palettes, grey,
    CMYK and 16 bits are converted, and of several frames the first is read.

    Args:
        path: of the file.
        max_pixels: larger pictures are refused before they are decoded.

    Returns:
        The picture, (3, H, W) float32 in [0, 1], or (4, H, W) if parts of it are transparent.

    Raises:
        ImageError: naming the file, if it cannot be read, is no image, is damaged or is too large.
    """
    path = Path(path)
    try:
        # A device or a pipe may have no end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ImageError(f"cannot read {path}: it is no file")
        file = path.open("rb")
    except OSError as error:
        raise ImageError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        # Warnings of Pillow are of damaged metadata and of sizes, which are checked here.
        with file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file, formats=READABLE) as image:
                _require_size(image, path, max_pixels)
                image.load()
                return _to_tensor(_in_srgb(upright(image)))
    except (ImageError, MemoryError):
        raise
    except UnidentifiedImageError as error:
        raise ImageError(f"{path} is no image of a known format; expected one of {', '.join(READABLE)}") from error
    except Image.DecompressionBombError as error:
        raise ImageError(f"{path} is too large: {error}") from error
    # A damaged file can make a decoder raise anything.
    except Exception as error:
        raise ImageError(f"{path} is damaged: {error}") from error


def require_writable(path: Path) -> None:
    """ImageError unless the suffix is that of a format that can be written."""
    if path.suffix.lower() not in WRITABLE:
        found = repr(path.suffix) if path.suffix else "none"
        raise ImageError(f"cannot write {path}: expected a suffix of {', '.join(WRITABLE)}; it has {found}")


def write(path: Path | str, picture: Tensor) -> None:
    """Write a picture in the format of the suffix, whole or not at all.

    JPEG has no transparency: there the picture lies on white.

    Args:
        path: of the file.
        picture: (3, H, W) or (4, H, W) in [0, 1].

    Raises:
        ImageError: naming the file, if it cannot be written.
    """
    path = Path(path)
    require_writable(path)
    format = WRITABLE[path.suffix.lower()]
    if format == "JPEG" and picture.shape[0] == 4:
        colors, alpha = picture[:3], picture[3:]
        picture = torch.lerp(torch.ones_like(colors), colors, alpha)
    image = _to_image(picture)
    data = io.BytesIO()
    try:
        if format == "PNG":
            image.save(data, format)
        else:
            image.save(data, format, quality=QUALITY)
        write_whole(path, data.getvalue())
    except OSError as error:
        raise ImageError(f"cannot write {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ImageError(f"cannot write {path}: {error}") from error


def _require_size(image: Image.Image, path: Path, max_pixels: int) -> None:
    width, height = image.size
    if width < 1 or height < 1:
        raise ImageError(f"{path} has no pixels: it is {width} x {height}")
    if width * height > max_pixels:
        raise ImageError(f"{path} is too large: {width} x {height}, more than {max_pixels} pixels")


def _in_srgb(image: Image.Image) -> Image.Image:
    """In sRGB, if the image has a profile that can be used; Pillow converts those of eight bits."""
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in ("L", "LA", "P", "PA", "RGB", "RGBA", "CMYK"):
        return image
    # Profiles are of pixels, not of palettes, and know no transparency.
    mode = {"LA": "L", "P": "RGB", "PA": "RGB", "RGBA": "RGB"}.get(image.mode, image.mode)
    alpha = image.convert("RGBA").getchannel("A") if image.has_transparency_data else None
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        colors = image if image.mode == mode else image.convert(mode)
        converted = ImageCms.profileToProfile(colors, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    # A profile that is damaged or of another kind of image, or a Pillow without this part.
    except (ImportError, OSError, ValueError, ImageCms.PyCMSError):
        return image
    assert converted is not None
    if alpha:
        converted.putalpha(alpha)
    return converted


def _to_tensor(image: Image.Image) -> Tensor:
    if image.mode.startswith("I"):
        # Of 16 bits: Pillow has no integers of 32 but for these.
        grey = _pixels(image.convert("I"), torch.int32).float().div_(65535).clamp_(0, 1)
        return grey.expand(3, -1, -1)
    if image.mode == "F":
        return _pixels(image, torch.float32).nan_to_num(0).clamp_(0, 1).expand(3, -1, -1)
    mode = "RGBA" if image.has_transparency_data else "RGB"
    pixels = _pixels(image.convert(mode), torch.uint8).float().div_(255)
    opaque = mode == "RGBA" and bool((pixels[3] == 1).all())
    return pixels[:3] if opaque else pixels


def _pixels(image: Image.Image, dtype: torch.dtype) -> Tensor:
    """(C, H, W)."""
    values = torch.frombuffer(bytearray(image.tobytes()), dtype=dtype)
    return values.view(image.height, image.width, -1).permute(2, 0, 1)


def _to_image(picture: Tensor) -> Image.Image:
    channels, height, width = picture.shape
    buffer = bytearray(height * width * channels)
    levels = torch.frombuffer(buffer, dtype=torch.uint8).view(height, width, channels)
    levels.copy_((picture * 255).round_().clamp_(0, 255).permute(1, 2, 0))
    return Image.frombytes("RGBA" if channels == 4 else "RGB", (width, height), bytes(buffer))
