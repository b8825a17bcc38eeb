"""Triton's interpreter, without work that it repeats for every call of every function: a third of its time."""

import functools
import inspect

import pytest
import triton.language as tl
from triton.runtime import interpreter


@functools.cache
def _languages(function) -> frozenset:
    """The modules of ``triton.language`` that a function sees."""
    return frozenset(v for v in function.__globals__.values() if inspect.ismodule(v) and v in (tl, tl.core))


def _replaced_once(replace):
    """The interpreter replaces operations of these modules for a launch, and again for every function called in it."""
    replaced = set()

    def replace_new(function):
        if _languages(function) <= replaced:
            return None  # calls of functions do not look at it
        scope = replace(function)
        restore = scope.restore

        def restore_all():  # at the end of a launch
            replaced.clear()
            restore()

        replaced.update(_languages(function))
        scope.restore = restore_all
        return scope

    return replace_new


@pytest.fixture(autouse=True, scope="session")
def once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_lang", _replaced_once(interpreter._patch_lang))
        yield
