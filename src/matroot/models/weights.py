"""Weights of networks as safetensors files that say which network they are of."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import _safetensors
from .._files import write_whole
from .._safetensors import WeightsError as WeightsError
from .._safetensors import to_bytes
from ._arguments import keywords, recorded_arguments
from ._registry import create, find
from .style_exchange import style_exchange

FORMAT = "matroot-weights 1"
STYLE_EXCHANGE = style_exchange.__name__
SHOWN = 3
"""Tensors that an error names."""


def save(model: nn.Module, path: Path | str) -> None:
    """Write the parameters and buffers of a network of this package, and what it was made from.

    The file is written whole or not at all. A compiled network is saved as itself.

    Args:
        model: a network of :func:`create` or :func:`style_exchange`.
        path: of the safetensors file.

    Raises:
        TypeError: for another module.
        WeightsError: if the file cannot be written, or if a tensor is not what ``create`` would make: float32, or an
            integer.

    Example:
        >>> from matroot.models import create, load, save
        >>> save(create("resnet18_dbn", width=8), "model.safetensors")
        >>> type(load("model.safetensors")).__name__
        'ResNet'
    """
    model = _uncompiled(model)
    arguments = dict(recorded_arguments(model))
    if "num_classes" in arguments:
        arguments["num_classes"] = model.num_classes
    state = model.state_dict()
    other = [f"{name} {tensor.dtype}" for name, tensor in state.items() if _is_other_float(tensor)]
    if other:
        raise WeightsError(f"weights are saved in float32; this network has {_listed(other)}: call model.float() first")
    # A copy each: safetensors takes no tensors that share memory, nor any layout but rows.
    tensors = {
        name: torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu").copy_(tensor)
        for name, tensor in state.items()
    }
    data = to_bytes(tensors, {"format": FORMAT, "arguments": json.dumps(arguments)})
    try:
        write_whole(Path(path), data)
    except OSError as error:
        raise WeightsError(f"cannot write {path}: {error.strerror}") from error


def load(path: Path | str) -> nn.Module:
    """The network of a file that :func:`save` wrote.

    Args:
        path: of the file.

    Returns:
        The network, on the default device, in training mode.

    Raises:
        WeightsError: saying what was expected, if there is no such file, or it is not one of these.

    Example:
        >>> from matroot.models import create, load, save
        >>> save(create("resnet18_dbn", num_classes=7, width=8), "model.safetensors")
        >>> load("model.safetensors").num_classes
        7
    """
    arguments, tensors = _read(Path(path))
    try:
        model = _build(keywords(arguments))
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise WeightsError(f"{path} is of a network that this version cannot build: {error}") from error
    _require_same(tensors, model.state_dict(), path)
    model.load_state_dict(tensors)
    return model


def load_weights(model: nn.Module, path: Path | str) -> list[str]:
    """Fill a network from a file of the same one, whatever its preset.

    Args:
        model: the network, changed in place.
        path: of a file that :func:`save` wrote.

    Returns:
        The names of tensors that were left out: the classifier's where the numbers of classes differ, which stays as it
        is.

    Raises:
        TypeError: for a module that no function of ``matroot.models`` made.
        WeightsError: if there is no such file, it is not one of :func:`save`, is of another network, or has other
            tensors; nothing changes then.

    Example:
        >>> from matroot.models import create, load_weights, save
        >>> save(create("resnet18_dbn", num_classes=7, width=8), "model.safetensors")
        >>> load_weights(create("resnet18_dbn", num_classes=10, width=8), "model.safetensors")
        ['fc.bias', 'fc.weight']
    """
    model = _uncompiled(model)
    name = recorded_arguments(model)["name"]
    arguments, tensors = _read(Path(path))
    if arguments["name"] != name:
        raise WeightsError(f"{path} has the weights of {arguments['name']}; expected those of {name}")
    state, left_out = model.state_dict(), []
    if "num_classes" in arguments and arguments["num_classes"] != model.num_classes:
        classifier = tuple(f"{layer}." for layer in find(name).classifier)
        left_out = sorted(tensor for tensor in tensors.keys() | state.keys() if tensor.startswith(classifier))
        for table in (tensors, state):
            for tensor in left_out:
                table.pop(tensor, None)
    _require_same(tensors, state, path)
    model.load_state_dict(tensors, strict=False)
    return left_out


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Arguments and tensors of a file."""
    metadata, tensors = _safetensors.read(path, "weights of matroot.models.save")
    if metadata.get("format") != FORMAT:
        found = repr(metadata["format"]) if "format" in metadata else "none"
        raise WeightsError(
            f"{path}: expected a file of matroot.models.save, of format {FORMAT!r}; its format is {found}"
        )
    try:
        arguments = json.loads(metadata.get("arguments", ""))
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict) or "name" not in arguments or _lacks_classes(arguments):
        raise WeightsError(f"{path} does not say which network it is of: its metadata is damaged")
    return arguments, tensors


def _require_same(tensors: dict[str, Tensor], state: dict[str, Tensor], path: Path | str) -> None:
    """Raise unless the tensors of a file have the names, shapes and dtypes of a network's."""
    missing, unexpected = state.keys() - tensors.keys(), tensors.keys() - state.keys()
    if missing:
        raise WeightsError(f"{path} lacks tensors of this network: {_listed(missing)}")
    if unexpected:
        raise WeightsError(f"{path} has tensors that this network has not: {_listed(unexpected)}")
    for kind, of in (("shape", lambda tensor: tuple(tensor.shape)), ("dtype", lambda tensor: tensor.dtype)):
        other = [
            f"{name} {of(tensor)}, expected {of(state[name])}"
            for name, tensor in tensors.items()
            if of(tensor) != of(state[name])
        ]
        if other:
            raise WeightsError(f"{path} has tensors of another {kind}: {_listed(other)}")


def _build(arguments: dict[str, Any]) -> nn.Module:
    """The network of recorded arguments: one of :func:`create`, or style exchange, which has no classes."""
    name = arguments.pop("name")
    return style_exchange(**arguments) if name == STYLE_EXCHANGE else create(name, **arguments)


def _lacks_classes(arguments: dict[str, Any]) -> bool:
    return arguments["name"] != STYLE_EXCHANGE and "num_classes" not in arguments


def _uncompiled(model: nn.Module) -> nn.Module:
    return getattr(model, "_orig_mod", model)


def _is_other_float(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype != torch.float32


def _listed(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    names = sorted(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
