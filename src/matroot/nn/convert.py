"""Decorrelated layers in the place of batch normalisation."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn

from .decorrelated import (
    DecorrelatedBatchNorm1d,
    DecorrelatedBatchNorm2d,
    DecorrelatedBatchNorm3d,
    _DecorrelatedBatchNorm,
)

_REPLACEMENTS: dict[type[nn.Module], type[_DecorrelatedBatchNorm]] = {
    nn.BatchNorm1d: DecorrelatedBatchNorm1d,
    nn.BatchNorm2d: DecorrelatedBatchNorm2d,
    nn.BatchNorm3d: DecorrelatedBatchNorm3d,
}


def convert_decorrelated_batchnorm(model: nn.Module, pattern: str | Sequence[str] = "*", **options) -> nn.Module:
    """Replace BatchNorm1d/2d/3d layers whose qualified name matches by decorrelated ones.

    model: changed in place, and returned; a model that is itself such a layer returns the new one.
    pattern: of names as ``named_modules`` gives them, with ``*``, ``?`` and ``[...]``; or several patterns.
        ``"bn1"`` is a ResNet's first layer, ``"layer?.*.bn2"`` one of each block, ``"*"`` every layer.
    options: arguments of :class:`DecorrelatedBatchNorm2d`, such as ``group_size=16``; eps and momentum are the
        replaced layer's unless given.

    The very parameters, device, dtype, training flag and running statistics are kept: until it is trained
    further, the new model evaluates like the old one. ValueError when nothing matches, when a matched layer keeps no
    running statistics, and, naming the layer, when the options do not fit it.

    Like ``torch.nn.SyncBatchNorm.convert_sync_batchnorm``.
    """
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    layers = {
        name: layer
        for name, layer in model.named_modules(remove_duplicate=False)
        if isinstance(layer, tuple(_REPLACEMENTS))
    }
    matching = {name: layer for name, layer in layers.items() if any(fnmatchcase(name, p) for p in patterns)}
    if not matching:
        names = ", ".join(map(repr, layers)) or "none"
        raise ValueError(f"no BatchNorm layer matches {pattern!r}; this model's are: {names}")

    made: dict[nn.Module, nn.Module] = {}  # a layer in several places stays one layer
    for name, layer in matching.items():
        if layer not in made:
            made[layer] = _decorrelated(name, layer, options)
    for name, layer in matching.items():
        if name == "":
            return made[layer]
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, made[layer])
    return model


def _decorrelated(name: str, layer: nn.Module, options: dict) -> _DecorrelatedBatchNorm:
    assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
    if layer.running_mean is None or layer.running_var is None:
        raise ValueError(f"layer {name!r} keeps no running statistics, which a decorrelated layer evaluates with")
    replacement = next(new for old, new in _REPLACEMENTS.items() if isinstance(layer, old))
    own = {"eps": layer.eps, "momentum": layer.momentum, "affine": layer.affine}
    own |= {"device": layer.running_mean.device, "dtype": layer.running_mean.dtype}
    try:
        new = replacement(layer.num_features, **own | options)
    except ValueError as error:
        raise ValueError(f"layer {name!r}: {error}") from error
    new.train(layer.training)
    if new.affine and layer.affine:
        new.weight, new.bias = layer.weight, layer.bias
    with torch.no_grad():
        new.running_mean.copy_(layer.running_mean)
        spread = layer.running_var if new.track == "covariance" else torch.rsqrt(layer.running_var + new.eps)
        new.running_matrix.copy_(torch.diag_embed(spread.unflatten(0, (new.groups, -1))))
        if layer.num_batches_tracked is not None:
            new.num_batches_tracked.copy_(layer.num_batches_tracked)
    return new
