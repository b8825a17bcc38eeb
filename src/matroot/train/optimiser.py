"""The optimiser of a recipe, with learning rates that live on the device."""

from typing import Any, cast

import torch
from torch import nn
from torch.optim import Optimizer

from .. import models as models  # before timm, which imports torchvision

# isort: split
from timm.optim import create_optimizer_v2, param_groups_weight_decay

from .recipe import Recipe

_TIMM_NAMES = {"sgd": "momentum", "adamw": "adamw"}
"""timm's ``sgd`` is Nesterov's."""


def create_optimizer(network: nn.Module, recipe: Recipe) -> Optimizer:
    """The optimiser of all parameters that are trained.

    SGD decays all of them, as the published recipes do; AdamW leaves out vectors, biases, and what the network names
    in ``no_weight_decay()``. The classifier learns at its own multiple of the rate. Rates are tensors on the device, so
    that a captured step sees them change; :func:`set_rate` sets them.
    """
    device = next(network.parameters()).device
    classifier = {id(parameter) for parameter in cast(Any, network).get_classifier().parameters()}
    groups = []
    for group in _groups(network, recipe):
        for factor, of_classifier in ((1.0, False), (recipe.classifier_lr_factor, True)):
            parameters = [p for p in group["params"] if (id(p) in classifier) == of_classifier]
            if parameters:
                groups.append({**group, "params": parameters, "lr_factor": factor})
    options: dict[str, Any] = {"capturable": True} if recipe.optimizer == "adamw" else {}
    optimizer = create_optimizer_v2(
        groups,
        opt=_TIMM_NAMES[recipe.optimizer],
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        momentum=recipe.momentum,
        fused=True,
        **options,
    )
    if recipe.optimizer == "sgd":
        for parameter in parameters_of(optimizer):
            # As torch starts too, but for a first update that is left out: its buffer is never filled.
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(recipe.lr * group["lr_factor"], dtype=torch.float32, device=device)
    return optimizer


def set_rate(optimizer: Optimizer, lr: float) -> None:
    """Set the rate of every group, its factor included, without waiting for the device."""
    for group in optimizer.param_groups:
        group["lr"].fill_(lr * group["lr_factor"])


def parameters_of(optimizer: Optimizer) -> list[nn.Parameter]:
    """All parameters of an optimiser, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _groups(network: nn.Module, recipe: Recipe) -> list[dict[str, Any]]:
    if recipe.optimizer == "sgd":
        return [{"params": [parameter for parameter in network.parameters() if parameter.requires_grad]}]
    exempt = cast(Any, network).no_weight_decay() if hasattr(network, "no_weight_decay") else ()
    return param_groups_weight_decay(network, recipe.weight_decay, no_weight_decay_list=exempt)
