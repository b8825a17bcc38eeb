"""Images as they were taken."""

from PIL import Image, ImageOps


def upright(image: Image.Image) -> Image.Image:
    """An image turned as its EXIF data say; as it is stored where these are damaged: they say nothing of the pixels."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # of every kind
        return image
