"""Statistics of normalisation layers, measured anew in the place of running averages.

Running averages follow weights that move. Where a layer amplifies directions of little variance, as exact whitening
does, statistics of a few steps ago are those of another network: it trains well and evaluates badly until the
learning rate is small.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..nn import DecorrelatedBatchNorm
from .objective import autocast
from .recipe import Recipe


@torch.no_grad()
def recalibrate(
    model: nn.Module, recipe: Recipe, batches: Iterable[tuple[Tensor, Tensor]], device: torch.device
) -> None:
    """Set the statistics of all layers in training to their mean over some batches; weights stay as they are.

    model: in training mode as in a step, which says whose statistics are running ones; left in evaluation mode.
    """
    norms = [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm | DecorrelatedBatchNorm) and layer.training and layer.running_mean is not None
    ]
    momenta = [norm.momentum for norm in norms]
    model.eval()  # nothing else is random or remembers
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    try:
        for images, _ in batches:
            with autocast(recipe, device):
                model(images)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.eval()
