"""Scripts of docs/figures as modules."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

FIGURES = Path(__file__).parents[2] / "docs/figures"


@pytest.fixture
def figures(monkeypatch):
    """Imports scripts of the folder by name, and forgets them: ``results`` and ``style`` are common names."""
    monkeypatch.syspath_prepend(FIGURES)
    yield importlib.import_module
    for name in [name for name, module in sys.modules.items() if _folder(module) == FIGURES]:
        del sys.modules[name]
    importlib.import_module("matplotlib.pyplot").close("all")


def _folder(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).parent
