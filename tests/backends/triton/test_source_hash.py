"""Compiled code is found again, in whichever order kernels are called."""

import importlib
import random

import pytest
import torch

from matroot.backends.triton import source_hash
from matroot.backends.triton.launch import launch_cached
from matroot.backends.triton.source_hash import hash_callees_first

from .test_compiles import MODULES

HELPERS = (
    "primitives", "scaling", "paper.clean", "tiled.tiles", "tiled.split_fp16", "tiled.split_integer",
    "tiled.fast_roots", "tiled.fast_gradient",
)  # fmt: skip


@pytest.fixture
def functions(monkeypatch):
    """All functions of kernels, as in a process that has hashed none of them; kernels by name."""
    triton = pytest.importorskip("triton")
    if triton.knobs.runtime.interpret:
        pytest.skip("the interpreter hashes nothing")
    modules = [importlib.import_module(f"matroot.backends.triton.{name}") for name in (*MODULES, *HELPERS)]
    found = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, triton.JITFunction)}

    def forget():
        monkeypatch.setattr(source_hash, "_hashed", set())
        for function in found.values():
            monkeypatch.setattr(function, "hash", None)
            monkeypatch.setattr(function, "used_global_vals", {})

    forget()
    return forget, {f.__name__: f for f in found.values() if f.__name__.endswith("_kernel")}


def test_hashes_do_not_depend_on_what_was_hashed_before(functions):
    forget, kernels = functions
    found = []
    for seed in range(4):
        forget()
        names = sorted(kernels)
        random.Random(seed).shuffle(names)
        for name in names:
            hash_callees_first(kernels[name])
        found.append({name: kernels[name].cache_key for name in kernels})
    for name in kernels:  # each in a process of its own
        forget()
        hash_callees_first(kernels[name])
        assert all(hashes[name] == kernels[name].cache_key for hashes in found), name


def test_constants_of_one_name_have_one_value(functions):
    """Triton sorts the constants of a kernel by name, and those of one name by where they happen to be in memory."""
    for name, kernel in functions[1].items():
        hash_callees_first(kernel)
        values = {}
        for (constant, _), (value, _) in kernel.used_global_vals.items():
            assert values.setdefault(constant, value) == value, (name, constant)


class Function:
    """Hashed or launched, it says so."""

    arg_names = ()

    def __init__(self, name, fn, events):
        self.name, self.fn, self.events = name, fn, events

    @property
    def cache_key(self):
        self.events.append(f"hash {self.name}")

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.events.append("launch")


def test_a_launch_hashes_first(monkeypatch):
    events = []
    monkeypatch.setitem(globals(), "inner", Function("inner", lambda: None, events))
    monkeypatch.setitem(globals(), "outer", Function("outer", lambda: inner, events))  # noqa: F821
    kernel = Function("kernel", lambda: (outer, inner), events)  # noqa: F821
    launch_cached(kernel, (1, 1, 1), (torch.zeros(1),), {}, ())
    assert events == ["hash inner", "hash outer", "hash kernel", "launch"]
