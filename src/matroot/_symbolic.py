"""Symbolic traces of ``torch.fx``: what is called in one is a node of its graph, into which the trace does not look.

As modules of ``torch.nn`` and functions of ``torch`` are. Arguments are checked when the graph runs.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from torch import nn
from torch.fx import Proxy

_T = TypeVar("_T", bound=Callable)


def one_node(function: _T) -> _T:
    """For public functions, and for the ``forward`` of layers: in a trace they are recorded instead of called."""

    @wraps(function)
    def recorded(*arguments: Any, **options: Any) -> Any:
        for argument in (*arguments, *options.values()):
            if isinstance(argument, Proxy):
                return _record(argument.tracer, recorded, arguments, options)
        return function(*arguments, **options)

    return recorded  # type: ignore[return-value]


def _record(tracer: Any, function: Callable, arguments: tuple, options: dict[str, Any]) -> Proxy:
    first = arguments[0] if arguments else None
    if isinstance(first, nn.Module):
        return tracer.create_proxy("call_module", tracer.path_of_module(first), arguments[1:], options)
    return tracer.create_proxy("call_function", function, arguments, options)
