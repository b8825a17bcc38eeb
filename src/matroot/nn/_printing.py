"""How layers print."""

import inspect

from torch import nn


def constructor_arguments(module: nn.Module, **stored: object) -> str:
    """The arguments of the constructor call, without those at their default.

    A value is the module's attribute of the same name, unless it is ``stored`` under another. A subclass with a
    constructor of its own, whose arguments are no attributes, prints those of the layer that it extends.
    """
    signatures = (inspect.signature(cls).parameters for cls in type(module).__mro__)
    parameters = next(names for names in signatures if all(name in stored or hasattr(module, name) for name in names))
    written = []
    for name, parameter in parameters.items():
        value = stored[name] if name in stored else getattr(module, name)
        if value != parameter.default:
            written.append(f"{name}={value!r}")
    return ", ".join(written)
