"""How layers print."""

import inspect

from torch import nn


def constructor_arguments(module: nn.Module, **stored: object) -> str:
    """The arguments of the constructor call, without those at their default.

    A value is the module's attribute of the same name, unless it is ``stored`` under another.
    """
    written = []
    for name, parameter in inspect.signature(type(module)).parameters.items():
        value = stored[name] if name in stored else getattr(module, name)
        if value != parameter.default:
            written.append(f"{name}={value!r}")
    return ", ".join(written)
