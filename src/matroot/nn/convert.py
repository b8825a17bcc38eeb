"""Decorrelated layers in the place of batch normalisation."""

from collections import OrderedDict
from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from .decorrelated import (
    DecorrelatedBatchNorm,
    DecorrelatedBatchNorm1d,
    DecorrelatedBatchNorm2d,
    DecorrelatedBatchNorm3d,
)

_REPLACEMENTS: dict[type[_BatchNorm], type[DecorrelatedBatchNorm]] = {
    nn.BatchNorm1d: DecorrelatedBatchNorm1d,
    nn.BatchNorm2d: DecorrelatedBatchNorm2d,
    nn.BatchNorm3d: DecorrelatedBatchNorm3d,
    nn.SyncBatchNorm: DecorrelatedBatchNorm,
}
_WITH_ACTIVATION: dict[str, type[_BatchNorm]] = {"BatchNormAct2d": nn.BatchNorm2d, "SyncBatchNormAct": nn.SyncBatchNorm}
"""timm's subclasses that apply their children ``drop`` and ``act`` after the normalisation."""


def convert_decorrelated_batchnorm(model: nn.Module, pattern: str | Sequence[str] = "*", **options) -> nn.Module:
    """Replace batch normalisation layers whose qualified name matches by decorrelated ones.

    BatchNorm1d/2d/3d become DecorrelatedBatchNorm1d/2d/3d, and SyncBatchNorm, which takes any number of dimensions,
    DecorrelatedBatchNorm. timm's BatchNormAct2d and SyncBatchNormAct become an ``nn.Sequential`` of the decorrelated
    layer, ``norm``, and their own ``drop`` and ``act``.

    The very parameters, device, dtype, training flag and running statistics are kept: until it is trained
    further, the new model evaluates like the old one. A layer with a weight and no bias gets a zero bias that is not
    trained.

    Like ``torch.nn.SyncBatchNorm.convert_sync_batchnorm``.

    Args:
        model: changed in place.
        pattern: of names as ``named_modules`` gives them, with ``*``, ``?`` and ``[...]``; or several patterns.
            ``"bn1"`` is a ResNet's first layer, ``"layer?.*.bn2"`` one of each block, ``"*"`` every layer.
        **options: arguments of :class:`DecorrelatedBatchNorm2d`, such as ``group_size=16``; eps, momentum and process
            group are the replaced layer's unless given.

    Returns:
        The model; if it is itself such a layer, the new one.

    Raises:
        TypeError: naming the layer, for a matching one of another subclass, which may compute something else; the model
            does not change.
        ValueError: when nothing matches, when a matching layer keeps no running statistics, and, naming the layer, when
            the options do not fit it.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        >>> matroot.nn.convert_decorrelated_batchnorm(model, "1", group_size=4)[1]
        DecorrelatedBatchNorm2d(num_features=8, groups=2)
    """
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    layers = {
        name: layer for name, layer in model.named_modules(remove_duplicate=False) if isinstance(layer, _BatchNorm)
    }
    matching = {name: layer for name, layer in layers.items() if any(fnmatchcase(name, p) for p in patterns)}
    if not matching:
        names = ", ".join(map(repr, layers)) or "none"
        raise ValueError(f"no BatchNorm layer matches {pattern!r}; this model's are: {names}")

    replacements: dict[nn.Module, nn.Module] = {}  # a layer in several places stays one layer
    for name, layer in matching.items():
        if layer not in replacements:
            replacements[layer] = _replacement(name, layer, options)
    for name, layer in matching.items():
        if name == "":
            return replacements[layer]
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, replacements[layer])
    return model


def _replacement(name: str, layer: _BatchNorm, options: dict) -> nn.Module:
    if type(layer) in _REPLACEMENTS:
        return _decorrelated(name, layer, _REPLACEMENTS[type(layer)], options)
    if isinstance(layer, LazyModuleMixin):
        raise TypeError(f"layer {name!r} is a {type(layer).__name__} without channels; run the model once first")
    base = _WITH_ACTIVATION.get(type(layer).__name__)
    children = dict(layer.named_children())
    if base is None or not isinstance(layer, base) or children.keys() != {"drop", "act"}:
        kind = f"{type(layer).__module__}.{type(layer).__qualname__}"
        raise TypeError(
            f"layer {name!r} is a {kind}, which may do more than batch normalisation; exclude it by the pattern, or "
            "replace it by one of torch.nn first"
        )
    norm = _decorrelated(name, layer, _REPLACEMENTS[base], options)
    sequence = nn.Sequential(OrderedDict(norm=norm, drop=children["drop"], act=children["act"]))
    sequence.training = layer.training
    return sequence


def _decorrelated(
    name: str, layer: _BatchNorm, replacement: type[DecorrelatedBatchNorm], options: dict
) -> DecorrelatedBatchNorm:
    if layer.running_mean is None or layer.running_var is None:
        raise ValueError(f"layer {name!r} keeps no running statistics, which a decorrelated layer evaluates with")
    own = {"eps": layer.eps, "momentum": layer.momentum, "affine": layer.affine}
    own |= {"device": layer.running_mean.device, "dtype": layer.running_mean.dtype}
    if isinstance(layer, nn.SyncBatchNorm):
        own["process_group"] = "world" if layer.process_group is None else layer.process_group
    try:
        new = replacement(layer.num_features, **own | options)
    except ValueError as error:
        raise ValueError(f"layer {name!r}: {error}") from error
    new.train(layer.training)
    if new.affine and layer.affine:
        new.weight = layer.weight
        if layer.bias is None:
            new.bias.requires_grad_(False)
        else:
            new.bias = layer.bias
    with torch.no_grad():
        new.running_mean.copy_(layer.running_mean)
        spread = layer.running_var if new.track == "covariance" else torch.rsqrt(layer.running_var + new.eps)
        new.running_matrix.copy_(torch.diag_embed(spread.unflatten(0, (new.groups, -1))))
        if layer.num_batches_tracked is not None:
            new.num_batches_tracked.copy_(layer.num_batches_tracked)
    return new
