"""What a network was made from, kept with it so that a file of its weights can say so."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from torch import nn

from .._registry import GRADIENTS, METHODS
from ..nn._validation import require_positive

_P = ParamSpec("_P")
_Model = TypeVar("_Model", bound=nn.Module)
_SIZES = ("in_channels", "image_size", "width", "depth", "reduce_to", "stem_width")


def recorded(build: Callable[_P, _Model]) -> Callable[_P, _Model]:
    """A builder whose networks have ``arguments``: its name and all keywords, defaults too, as JSON can hold them.

    ValueError for sizes below 1.
    """
    signature = inspect.signature(build)

    @wraps(build)
    def builder(*args: _P.args, **kwargs: _P.kwargs) -> _Model:
        require_positive(**{name: size for name in _SIZES if isinstance(size := kwargs.get(name), int)})
        model = build(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments: dict[str, Any] = {"name": build.__name__}
        for keyword, value in bound.arguments.items():
            several = signature.parameters[keyword].kind is inspect.Parameter.VAR_KEYWORD
            arguments.update(value if several else {keyword: value})
        if "num_classes" in arguments:
            arguments["num_classes"] = model.num_classes
        vars(model)["arguments"] = {keyword: _as_json(value) for keyword, value in arguments.items()}
        return model

    return builder


def recorded_arguments(model: nn.Module) -> dict[str, Any]:
    """The ``arguments`` of a network; TypeError for a module that no builder of ``matroot.models`` made."""
    arguments = vars(model).get("arguments")
    if not isinstance(arguments, dict):
        raise TypeError(f"expected a network of matroot.models.create, got another {type(model).__name__}")
    return arguments


def keywords(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords for ``create`` from recorded ``arguments``, ``name`` among them."""
    read = dict(arguments)
    for field, table in (("method", METHODS), ("gradient", GRADIENTS)):
        if isinstance(read.get(field), dict):
            fields = dict(read[field])
            read[field] = table[fields.pop("name")](**fields)
    return read


def _as_json(value: Any) -> Any:
    """Methods and gradients as their name and fields, sequences as lists, all else as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"name": getattr(value, "name", type(value).__name__), **asdict(value)}
    return list(value) if isinstance(value, tuple) else value
