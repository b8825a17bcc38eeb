"""Mixup and cutmix of batches."""

import numpy as np
from torch import Tensor

from .. import models as models  # before timm, which imports torchvision

# isort: split
from timm.data import Mixup

from .recipe import Recipe


def mix(
    recipe: Recipe, num_classes: int, images: Tensor, labels: Tensor, epoch: int, step: int
) -> tuple[Tensor, Tensor]:
    """Images, mixed in place, and their targets (B, num_classes); both as they are where the recipe mixes nothing.

    images: (B, C, H, W), or clips (B, T, C, H, W), whose frames are mixed alike; B even.
    epoch, step: the only source of randomness beside the recipe's seed, so all processes mix in the same way.
    """
    if not recipe.mixup and not recipe.cutmix:
        return images, labels
    state = np.random.SeedSequence((recipe.seed, epoch, step)).generate_state(1)
    np.random.seed(state)  # timm draws from NumPy's own generator
    mixup = Mixup(recipe.mixup, recipe.cutmix, label_smoothing=recipe.label_smoothing, num_classes=num_classes)
    planes, targets = mixup(images.flatten(1, -3), labels)
    return planes.reshape(images.shape), targets
