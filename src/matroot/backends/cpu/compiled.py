"""Minimax roots and Smith gradients on the CPU, by the compiled code in roots.c where the installation has it.

The library is built with the package (hatch_build.py) and loaded once. It shares torch's threads: it is linked to
no OpenMP of its own, but finds the one that torch brought. Results of a matrix have the same bits in any batch, at any
alignment and strides, with any number of threads.
"""

import os
from ctypes import CDLL, c_double, c_int, c_long, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._counting import report_products
from ..._tracing import constant_in_traces
from ...gradients import Gradient, Krylov, Smith
from ...methods import Method, Minimax
from ...methods._base import Output
from ...methods.minimax import compiled_schedules
from .. import torch_ops
from .._base import CallContext, Cotangents, Evaluation, FusedBackend, Tensors, by_kind, readable, unsupported_pair

LIBRARY = Path(__file__).with_name("_roots.so")
LARGEST = 512
"""Products are not made for matrices that do not fit the second-level cache."""
_forked = False
"""Whether this process is a fork of another: OpenMP's threads stayed there, and a region would wait for them."""
_REAL = {torch.float32: "float", torch.float64: "double"}


class Compiled(FusedBackend):
    """``Minimax`` with ``Smith``, real; its roots with ``Krylov`` too."""

    name = "compiled"
    device_type = "cpu"

    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        if method != Minimax() or not (gradient == Smith() or isinstance(gradient, Krylov)):
            pair = unsupported_pair(method, gradient)
            return f"no compiled code for {pair}, only for 'minimax' with 'smith' or 'krylov'"
        if context.dtype.is_complex:
            return "compiled code is for real matrices"
        if context.n > LARGEST:
            return f"matrices of size {context.n} are larger than {LARGEST}"
        if context.traced and not isinstance(gradient, Smith):
            return "inside torch.compile only with gradient 'smith'"
        return unavailable_reason()

    def solves(self, gradient: Gradient) -> bool:
        return isinstance(gradient, Smith)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        n, dtype = A.shape[-1], A.dtype
        A = A.resolve_neg() if dtype in _REAL else A.float()
        S, R = _output(A, output != "invsqrt"), _output(A, output != "sqrt")
        table = compiled_schedules(A.dtype)
        work, threads = _workspace(A)
        count = _function("roots", A.dtype)(
            A.data_ptr(), _strides(A), _pointer(S), _pointer(R), A.shape[0], n, ridge, _max_shift(n, dtype),
            table.data_ptr(), table.shape[0], work.data_ptr(), threads,
        )  # fmt: skip
        report_products(count, A.shape[0])
        return Evaluation(tuple([root for root in (S, R) if root is not None]))

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        dtype = saved[0].dtype if saved[0].dtype in _REAL else torch.float32
        S, R = readable(saved[0], dtype), readable(saved[1], dtype)
        GS, GR = by_kind(cotangents, output)
        GS, GR = _strided(GS, dtype), _strided(GR, dtype)
        X = torch.empty_like(S)
        work, threads = _workspace(S)
        count = _function("solve", dtype)(
            S.data_ptr(), R.data_ptr(), _pointer(GS), _strides(GS), _pointer(GR), _strides(GR), X.data_ptr(),
            S.shape[0], S.shape[-1], ridge, work.data_ptr(), threads,
        )  # fmt: skip
        report_products(count, S.shape[0])
        return X


@constant_in_traces
def unavailable_reason() -> str | None:
    """Why this installation has no compiled code to run, in words; None if it has."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def _library() -> Any:
    reason = unavailable_reason()
    if reason is not None:
        raise RuntimeError(reason)
    return _load()


@cache
def _load() -> Any:
    """The library, or why there is none."""
    if not LIBRARY.exists():
        failure = LIBRARY.with_name("_roots_failure.txt")  # written by hatch_build.py
        why = failure.read_text(encoding="utf-8").strip() if failure.exists() else "it was not built"
        return f"this installation has no compiled code: {why}"
    try:
        library = CDLL(str(LIBRARY))
        library.matroot_workspace.argtypes, library.matroot_workspace.restype = [c_long, c_long], c_long
    except (OSError, AttributeError) as error:
        return f"the compiled code of this installation cannot be loaded: {error}"
    return library


@cache
def _function(name: str, dtype: torch.dtype) -> Any:
    function = getattr(_library(), f"matroot_{name}_{_REAL[dtype]}")
    P, L, D, I = c_void_p, c_long, c_double, c_int  # noqa: E741
    signatures = {"roots": [P, P, P, P, L, L, D, D, P, I, P, I], "solve": [P, P, P, P, P, P, P, L, L, D, P, I]}
    function.argtypes, function.restype = signatures[name], L
    return function


_max_shift = cache(torch_ops.rounding_tolerance)
"""The last shift to try on a matrix that is not positive definite, relative to a bound of its largest eigenvalue."""


def _workspace(A: Tensor) -> tuple[Tensor, int]:
    """Memory for as many threads as there is work for, and their number: torch's, one in a fork."""
    threads = 1 if _forked else torch.get_num_threads()
    return A.new_empty(min(threads, A.shape[0]) * _library().matroot_workspace(A.shape[-1], A.itemsize)), threads


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def _output(A: Tensor, asked: bool) -> Tensor | None:
    return torch.empty_like(A, memory_format=torch.contiguous_format) if asked else None


def _strided(G: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """``readable``, but of any strides."""
    return G if G is None or (G.dtype == dtype and not G.is_neg()) else G.resolve_neg().to(dtype)


def _strides(A: Tensor | None) -> Any:
    return None if A is None else (c_long * 3)(*A.stride())


def _pointer(A: Tensor | None) -> int | None:
    return None if A is None else A.data_ptr()
