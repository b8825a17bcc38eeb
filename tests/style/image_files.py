"""Image files in memory, and what is read of them."""

import io

import torch
from PIL import Image

from matroot.style.images import read


def image_of(levels: torch.Tensor, mode: str = "RGB") -> Image.Image:
    _, height, width = levels.shape
    return Image.frombytes(mode, (width, height), bytes(levels.permute(1, 2, 0).flatten().tolist()))


def encoded(image: Image.Image, format: str, **options) -> bytes:
    data = io.BytesIO()
    image.save(data, format, **options)
    return data.getvalue()


def decoded(tmp_path, data: bytes, **options) -> torch.Tensor:
    path = tmp_path / "image"
    path.write_bytes(data)
    return read(path, **options)


def in_levels(picture: torch.Tensor) -> torch.Tensor:
    assert picture.dtype == torch.float32
    return (picture * 255).round().to(torch.uint8)
