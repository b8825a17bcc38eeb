"""What is minimised."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .recipe import Recipe


def autocast(recipe: Recipe, device: torch.device) -> torch.autocast:
    """The recipe's precision; off for float32."""
    dtype = torch.float16 if recipe.precision == "float16" else torch.bfloat16
    return torch.autocast(device.type, dtype, enabled=recipe.precision != "float32")


def logits_and_loss(model: nn.Module, recipe: Recipe, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (B, classes) and the mean cross-entropy, in float32.

    targets: labels (B,), smoothed as the recipe says; or probabilities (B, classes), taken as they are.
    """
    with autocast(recipe, images.device):
        logits = model(images).float()
        smoothing = 0.0 if targets.is_floating_point() else recipe.label_smoothing
        return logits, functional.cross_entropy(logits, targets, label_smoothing=smoothing)
