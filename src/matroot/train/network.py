"""The network of a recipe, and what changes in it from epoch to epoch."""

import copy
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from .. import models
from .._terminal import CommandError
from .data.batches import Data
from .recipe import Recipe


def build(recipe: Recipe, data: Data) -> nn.Module:
    """The network with its initial weights, on the CPU; CommandError for fields and data that do not fit it."""
    if data.clips != takes_clips(recipe):
        found, taken = ("clips", "images") if data.clips else ("images", "clips")
        raise CommandError(f"{recipe.dataset} has {found}; {recipe.model} takes {taken}")
    try:
        network = models.create(
            recipe.model,
            num_classes=data.num_classes,
            preset=recipe.preset,
            in_channels=data.channels,
            **_own_options(recipe),
        )
    except ValueError as error:
        raise CommandError(f"{recipe.model} cannot be built: {error}") from error
    if recipe.initial_weights is not None:
        models.load_weights(network, recipe.initial_weights)
    for norm in frozen_norms(network, recipe):
        norm.requires_grad_(False)
    if recipe.batch_size == 1:
        _require_statistics(network, recipe, data)
    return network


def takes_clips(recipe: Recipe) -> bool:
    """Whether the network is for clips; the others are for images."""
    return recipe.model.startswith("tea")


def to_channels_last(network: nn.Module) -> None:
    """Weights of two-dimensional convolutions in the channels-last format; those of more dimensions have none."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def training_mode(network: nn.Module, recipe: Recipe) -> None:
    """Training mode, but for normalisations that the recipe freezes."""
    network.train()
    for norm in frozen_norms(network, recipe):
        norm.eval()


def frozen_norms(network: nn.Module, recipe: Recipe) -> list[_BatchNorm]:
    """Normalisations that the recipe freezes."""
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    return norms[1:] if recipe.freeze_norms else []


def preset_of_epoch(recipe: Recipe, epoch: int) -> str:
    """The preset of epoch 1, 2, ..."""
    if recipe.first_preset is not None and epoch <= recipe.first_preset_epochs:
        return recipe.first_preset
    return recipe.preset


def set_preset(network: nn.Module, preset: str) -> None:
    """Compute the network's roots in another way; CommandError for a preset that is another network."""
    try:
        models.set_preset(network, preset)
    except (TypeError, ValueError) as error:
        raise CommandError(f"first_preset: {error}") from error


def _require_statistics(network: nn.Module, recipe: Recipe, data: Data) -> None:
    """CommandError if a batch of one leaves a normalisation a single value of each channel, which has no variance."""
    shape = (data.channels, recipe.image_size, recipe.image_size)
    batch = torch.zeros(1, recipe.frames, *shape) if data.clips else torch.zeros(1, *shape)
    probe = copy.deepcopy(network).eval()
    frozen = frozen_norms(probe, recipe)
    values: list[int] = []
    for norm in probe.modules():
        if isinstance(norm, _BatchNorm) and norm not in frozen:
            norm.register_forward_pre_hook(lambda _, given: values.append(given[0].numel() // given[0].shape[1]))
    with torch.no_grad():
        probe(batch)
    if 1 in values:
        raise CommandError(
            f"batch_size 1 with an image_size of {recipe.image_size} leaves a normalisation of {recipe.model} a single "
            "value of each channel, which has no variance; a batch_size of 2 has one, and so have larger images"
        )


def _own_options(recipe: Recipe) -> dict[str, Any]:
    """Keywords that only some networks take; CommandError where the recipe sets one for another network."""
    is_transformer, is_decorrelated = recipe.model.startswith("so_vit"), recipe.model.endswith("_dbn")
    if recipe.drop_path and not is_transformer:
        raise CommandError(f"drop_path {recipe.drop_path} is for transformers, so_vit_*; the network is {recipe.model}")
    for field in ("published_init", "whitening_eps"):
        if getattr(recipe, field) and not is_decorrelated:
            raise CommandError(f"{field} is for decorrelated networks, *_dbn; the network is {recipe.model}")
    if is_transformer:
        return {"image_size": recipe.image_size, "drop_path": recipe.drop_path}
    if is_decorrelated:
        eps = {} if recipe.whitening_eps is None else {"eps": recipe.whitening_eps}
        return {"published_init": recipe.published_init, **eps}
    return {"image_size": recipe.image_size} if recipe.model.endswith("_gcp") else {}
