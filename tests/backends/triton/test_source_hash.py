"""Compiled code is found again, in whichever order kernels are called."""

import random

import pytest
import torch

from matroot.backends.triton.launch import launch_cached
from matroot.backends.triton.source_hash import hash_callees_first


@pytest.fixture
def kernels():
    """By module and name."""
    triton = pytest.importorskip("triton")
    if triton.knobs.runtime.interpret:
        pytest.skip("the interpreter hashes nothing")
    from .unhashed import functions

    return {f"{f.__module__}.{f.__name__}": f for f in functions() if f.__name__.endswith("_kernel")}


def hashes(kernels, names, monkeypatch):
    """Of these kernels, in a process that calls no others before."""
    from .unhashed import forget_hashes

    forget_hashes(monkeypatch)
    for name in names:
        hash_callees_first(kernels[name])
    return {name: kernels[name].cache_key for name in names}


def test_hashes_do_not_depend_on_what_was_hashed_before(kernels, monkeypatch):
    alone = {}
    for name in kernels:
        alone |= hashes(kernels, [name], monkeypatch)
    for seed in range(4):
        names = sorted(kernels)
        random.Random(seed).shuffle(names)
        assert hashes(kernels, names, monkeypatch) == alone


def test_constants_of_one_name_have_one_value(kernels, monkeypatch):
    """Triton sorts the constants of a kernel by name, and those of one name by where they happen to be in memory."""
    hashes(kernels, kernels, monkeypatch)
    for name, kernel in kernels.items():
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
