"""The functions of kernels as in a process that has hashed none of them."""

import importlib

from triton import JITFunction

from matroot.backends.triton import source_hash

from .test_compiles import MODULES

HELPERS = (
    "primitives", "scaling", "on_chip.coupled", "paper.clean", "tiled.tiles", "tiled.split_fp16", "tiled.fast_roots",
    "tiled.fast_gradient", "robust.tiles", "robust.roots_input", "robust.roots_progress", "robust.roots_steps",
    "robust.gradient_input", "robust.gradient_bounds", "robust.gradient_steps",
)  # fmt: skip


def functions():
    modules = [importlib.import_module(f"matroot.backends.triton.{name}") for name in (*MODULES, *HELPERS)]
    found = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, JITFunction)}
    return [*found.values()]


def forget_hashes(monkeypatch):
    monkeypatch.setattr(source_hash, "_hashed", set())
    for function in functions():
        monkeypatch.setattr(function, "hash", None)
        monkeypatch.setattr(function, "used_global_vals", {})
