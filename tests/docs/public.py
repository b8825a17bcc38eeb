"""What is public: the modules of the API reference, and their names."""

import importlib
import inspect

MODULES = (
    "matroot",
    "matroot.coefficients",
    "matroot.gradients",
    "matroot.methods",
    "matroot.metrics",
    "matroot.models",
    "matroot.nn",
    "matroot.style",
)


def public_names(module: str) -> list[str]:
    """Names of ``__all__``; else those that a package imports from within matroot, or that a module defines."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    home = "matroot" if hasattr(found, "__path__") else module
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and (getattr(value, "__module__", None) or "").startswith(home)
    ]


def public_callables() -> dict[str, object]:
    """Functions and classes by qualified name, each once: ``matroot.Pade`` is ``matroot.methods.Pade`` too."""
    found: dict[int, tuple[str, object]] = {}
    for module in MODULES:
        for name in public_names(module):
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
                found.setdefault(id(value), (f"{module}.{name}", value))
    return dict(found.values())
