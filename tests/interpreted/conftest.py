"""Triton's interpreter, without work that it repeats for every call of every function: a third of its time.

And with masks that are truth values: in Triton 3.9 one of a scalar has the type of what was compared, which is refused.
"""

import functools
import inspect

import pytest


@pytest.fixture(autouse=True, scope="session")
def once():
    """Operations of ``triton.language`` are replaced for a launch, and not again for every function called in it."""
    from triton.runtime import interpreter  # here, because this file is read without Triton too

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_lang", _once(interpreter._patch_lang))
        for name, place in (("create_masked_load", 2), ("create_masked_store", 3)):
            operation = getattr(interpreter.InterpreterBuilder, name)
            patch.setattr(interpreter.InterpreterBuilder, name, _with_truth_values(operation, place))
        yield


def _with_truth_values(operation, place):
    """The operation, whose argument at this place is a mask."""

    def with_truth_values(*arguments):
        mask = arguments[place]
        mask.data = mask.data.astype(bool, copy=False)
        return operation(*arguments)

    return with_truth_values


def _once(replace):
    replaced = set()

    def replace_new(function):
        modules = _language_of(function)
        if modules <= replaced:
            return None  # which a call of a function does not look at
        scope = replace(function)
        restore = scope.restore

        def restore_all():  # at the end of a launch
            replaced.clear()
            restore()

        replaced.update(modules)
        scope.restore = restore_all
        return scope

    return replace_new


@functools.cache
def _language_of(function) -> frozenset:
    """The modules of ``triton.language`` that a function sees."""
    import triton.language as tl

    return frozenset(v for v in function.__globals__.values() if inspect.ismodule(v) and v in (tl, tl.core))
