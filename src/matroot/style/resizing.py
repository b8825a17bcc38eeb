"""Pictures of other sizes."""

import torch
from torch import Tensor
from torch.nn import functional


def resized(pictures: Tensor, size: tuple[int, ...], mode: str = "bilinear") -> Tensor:
    """Pictures (B, C, H, W) of this height and width, without aliasing, in their dtype; themselves if that is theirs.

    Computed in float32 at least: a processor resizes nothing narrower.
    """
    if tuple(pictures.shape[-2:]) == size:
        return pictures
    wide = pictures.to(torch.promote_types(pictures.dtype, torch.float32))
    return functional.interpolate(wide, size, mode=mode, antialias=True, align_corners=False).to(pictures.dtype)


def limited(pictures: Tensor, size: int | None) -> Tensor:
    """Pictures (B, C, H, W) reduced so that no side is longer than this; unchanged if none is, or for None."""
    if size is not None and size < 1:
        raise ValueError(f"a size must be at least 1, got {size}")
    height, width = pictures.shape[-2:]
    longest = max(height, width)
    if size is None or longest <= size:
        return pictures
    return resized(pictures, tuple(max(1, round(side * size / longest)) for side in (height, width))).clamp_(0, 1)
