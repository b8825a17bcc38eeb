"""Augmentation of a batch on its device, without waiting for it."""

import torch
from torch import Tensor
from torch.nn import functional


def crop_indices(starts: Tensor, side: int, mirrored: Tensor | None = None) -> Tensor:
    """Rows or columns of crops that begin at ``starts`` (N,), backwards where ``mirrored``; int64 (N, side)."""
    within = torch.arange(side, device=starts.device)
    if mirrored is None:
        return starts[:, None] + within
    return starts[:, None] + torch.where(mirrored[:, None], side - 1 - within, within)


def crop(pixels: Tensor, examples: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Crops (B, h, w, C) of ``examples`` (B,) out of ``pixels`` (N, H, W, C)."""
    return pixels[examples[:, None, None], rows[:, :, None], columns[:, None, :]]


def resized_crop(images: Tensor, windows: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """Windows (B, 4) of float images (B, C, H, W), bilinearly resized to (B, C, size, size), mirrored where asked."""
    height, width = images.shape[-2:]
    # Centres of the pixels wanted, as a share of the window, then in the -1 ... 1 of grid_sample.
    centres = (torch.arange(size, device=images.device) + 0.5) / size
    top, left, heights, widths = windows.to(images.dtype)[:, :, None].unbind(1)
    y = (top + centres * heights) * (2 / height) - 1
    x = (left + torch.where(mirrored[:, None], 1 - centres, centres) * widths) * (2 / width) - 1
    grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), dim=-1)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def resize(images: Tensor, size: int) -> Tensor:
    """Images (B, C, H, W) as (B, C, size, size)."""
    if images.shape[-2:] == (size, size):
        return images
    return functional.interpolate(images, size=(size, size), mode="bilinear", align_corners=False, antialias=True)


def erase_(images: Tensor, rectangles: Tensor) -> Tensor:
    """Set images (B, ..., H, W) to 0, the mean colour, inside rectangles (B, 4), and return them."""
    top, left, heights, widths = rectangles[:, :, None].unbind(1)
    row = torch.arange(images.shape[-2], device=images.device)
    column = torch.arange(images.shape[-1], device=images.device)
    inside_rows = (row >= top) & (row < top + heights)
    inside_columns = (column >= left) & (column < left + widths)
    inside = inside_rows[:, :, None] & inside_columns[:, None, :]
    return images.masked_fill_(inside.view(len(images), *(1,) * (images.ndim - 3), *inside.shape[1:]), 0.0)


class Normalise:
    """uint8 or float pixels 0 ... 255 to float32 of mean 0 and standard deviation 1."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        deviation = torch.tensor(std, device=device)[:, None, None]
        self._scale = 1 / (255 * deviation)
        self._shift = -torch.tensor(mean, device=device)[:, None, None] / deviation

    def __call__(self, images: Tensor) -> Tensor:
        """(..., C, H, W) in the same memory format."""
        return images.float().mul(self._scale).add_(self._shift)


def memory_format(images: Tensor, channels_last: bool) -> Tensor:
    """Images or clips (..., C, H, W), contiguous, or with channels last in memory frame by frame."""
    if channels_last:
        return images.movedim(-3, -1).contiguous().movedim(-1, -3)
    return images.contiguous()
