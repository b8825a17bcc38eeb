"""Crops of pictures, of which each step has its own: they depend on seed and step alone."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .pictures import Pictures
from .recipe import Recipe


@dataclass(frozen=True)
class Pairs:
    """Contents and styles of a step, (B, 3, size, size) in [0, 1], channels-last."""

    content: Tensor
    style: Tensor


@dataclass(frozen=True)
class Batches:
    """Photographs to paint and paintings to paint them like."""

    pictures: Pictures
    """Photographs, then paintings."""
    photos: int
    """How many are photographs."""
    recipe: Recipe

    def step(self, number: int) -> Pairs:
        """The pairs of step 0, 1, ...; all random numbers are drawn on the CPU, so that devices agree."""
        seed = np.random.SeedSequence((self.recipe.seed, number)).generate_state(1)[0]
        generator = torch.Generator().manual_seed(int(seed))
        content = self._crops(1 - self.recipe.exchanged, generator)
        style = self._recolored(self._crops(self.recipe.exchanged, generator), generator)
        return Pairs(*(x.contiguous(memory_format=torch.channels_last) for x in (content, style)))

    def _crops(self, share_of_photos: float, generator: torch.Generator) -> Tensor:
        uniform = torch.rand(self.recipe.pairs, 6, generator=generator).unbind(1)
        photos, paintings = self.photos, len(self.pictures) - self.photos
        chosen = torch.where(
            uniform[0] < share_of_photos, (photos * uniform[1]).long(), photos + (paintings * uniform[1]).long()
        )
        size = self.pictures.sizes[chosen]
        short = size.amin(1)
        # More enlarged, brushstrokes would be blurred, and blur be learned as a style.
        smallest = short.clamp(max=self.recipe.crop / self.recipe.enlarged)
        side = smallest + (short - smallest) * uniform[2]
        corner = torch.stack(uniform[3:5], dim=1) * (size - side[:, None])
        return cut(self.pictures, chosen, torch.cat([corner, side[:, None]], dim=1), uniform[5] < 0.5, self.recipe.crop)

    def _recolored(self, images: Tensor, generator: torch.Generator) -> Tensor:
        order = torch.rand(len(images), 3, generator=generator).argsort(1)
        changed = torch.rand(len(images), 1, generator=generator) < self.recipe.recolored
        order = torch.where(changed, order, torch.arange(3)).to(images.device, non_blocking=True)
        return images.gather(1, order[:, :, None, None].expand_as(images))


def cut(pictures: Pictures, chosen: Tensor, windows: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """Windows of pictures, resampled to (B, 3, size, size) in [0, 1], on the pictures' device.

    chosen: (B,) numbers of pictures. windows: (B, 3) top, left and side in pixels. mirrored: (B,) left to right.
    All three may be on the CPU: they are small.
    """
    height, width = pictures.pixels.shape[2:]
    device = pictures.pixels.device
    chosen, windows, mirrored = (x.to(device, non_blocking=True) for x in (chosen, windows.float(), mirrored))
    # Centres of pixels in units of the window, then in those of grid_sample, whose canvas is [-1, 1].
    along = (torch.arange(size, device=device) + 0.5) / size
    top, left, side = windows[:, :, None].unbind(1)
    y = 2 * (top + side * along) / height - 1
    x = 2 * (left + side * torch.where(mirrored[:, None], 1 - along, along)) / width - 1
    grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), dim=-1)
    images = pictures.pixels[chosen].float() / 255
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False).clamp(0, 1)
