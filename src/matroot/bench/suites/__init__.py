"""The suites of ``matroot bench``: each is a module of this folder with a function ``groups``.

Modules are imported when they are measured: the command line needs the names alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cases import Group, Settings

NAMES = (
    "scalar",
    "forward",
    "backward",
    "batch",
    "dimension",
    "schemes",
    "residuals",
    "pade",
    "applications",
    "accuracy",
    "speed",
)
"""In the order of a run."""

GPU_NAMES = ("shapes", "hard", "large", "float64", "first-use", "singular", "overhead", "steps")
"""Suites of ``matroot.bench.gpu``, which writes a file for each."""


def groups(name: str, settings: "Settings") -> "Iterator[Group]":
    """What a suite measures with these settings."""
    return import_module(f".{name}", __name__).groups(settings)


SUITES: "dict[str, Callable[[Settings], Iterator[Group]]]" = {name: partial(groups, name) for name in NAMES}
