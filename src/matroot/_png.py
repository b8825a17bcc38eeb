"""Images as PNG files."""

import io

from PIL import Image
from torch import Tensor


def png(image: Tensor) -> bytes:
    """The file of an image (3, H, W) in [0, 1]; values beyond are clamped."""
    pixels = image.float().clamp(0, 1).mul(255).round().byte().movedim(0, -1).cpu().contiguous().numpy()
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()
