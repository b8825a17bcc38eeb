"""Fast, differentiable matrix square roots and inverse square roots.

The public names are those of ``__init__.pyi``. Each is imported when it is first used, so that ``matroot --version``
does not wait for torch.
"""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.1.0"

_MODULE_OF = {
    alias.name: "" if node.module is None else node.module
    for node in _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, _ast.ImportFrom)
    for alias in node.names
}
"""Public name -> the module it comes from; empty for submodules."""
_WITH_EXTRAS = ("models", "style")
"""Submodules that need more than torch: not for those who ask for everything."""
__all__ = [*(name for name in _MODULE_OF if name not in _WITH_EXTRAS), "__version__"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULE_OF[name]
    value = getattr(_import_module(f".{module}", __name__), name) if module else _import_module(f".{name}", __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
