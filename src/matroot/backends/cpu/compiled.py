"""Minimax roots and Smith gradients on the CPU, by the compiled code in roots.c where the installation has it.

The library is built with the package (hatch_build.py) and loaded once. It shares torch's threads: it is linked to
no OpenMP of its own, but finds the one that torch brought.
"""

from ctypes import CDLL, c_double, c_int, c_long, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._counting import report_products

LIBRARY = Path(__file__).with_name("_roots.so")
LARGEST = 512
"""Products are not made for matrices that do not fit the second-level cache."""


@torch.compiler.assume_constant_result
def available() -> bool:
    """Whether this installation has the compiled code."""
    return _library() is not None


def roots(A: Tensor, ridge: float, table: Tensor, sqrt: bool = True, invsqrt: bool = True) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots of the symmetric parts of ``A`` (k, n, n), real; one that is not asked for is empty.

    float32 of half types.

    NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
    ``table`` holds schedules as roots.c describes them, in float64.
    """
    n, dtype = A.shape[-1], A.dtype
    if dtype not in _REAL:
        A = A.float()
    S, R = _output(A, sqrt), _output(A, invsqrt)
    work, threads = _workspace(A)
    count = _function("roots", A.dtype)(
        A.data_ptr(), _strides(A), _pointer(S), _pointer(R), A.shape[0], n, ridge, _widest(n, dtype),
        table.data_ptr(), table.shape[0], work.data_ptr(), threads,
    )  # fmt: skip
    report_products(count, A.shape[0])
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, for contiguous S and R (k, n, n).

    Symmetric parts of the G's count, and not both may be None.
    """
    n, out = S.shape[-1], torch.empty_like(S)
    work, threads = _workspace(S)
    count = _function("solve", S.dtype)(
        S.data_ptr(), R.data_ptr(), _pointer(GS), _strides(GS), _pointer(GR), _strides(GR), out.data_ptr(),
        S.shape[0], n, ridge, work.data_ptr(), threads,
    )  # fmt: skip
    report_products(count, S.shape[0])
    return out


@cache
def _widest(n: int, dtype: torch.dtype) -> float:
    """Eigenvalues negative by the rounding of the caller's dtype count as zero."""
    computed = dtype if dtype in _REAL else torch.float32
    return 4 * n * torch.finfo(computed).eps + (torch.finfo(dtype).eps if dtype != computed else 0.0)


_REAL = {torch.float32: "float", torch.float64: "double"}


@cache
def _library() -> Any:
    try:
        library = CDLL(str(LIBRARY))
    except OSError:
        return None
    library.matroot_workspace.argtypes, library.matroot_workspace.restype = [c_long], c_long
    return library


@cache
def _function(name: str, dtype: torch.dtype) -> Any:
    function = getattr(_library(), f"matroot_{name}_{_REAL[dtype]}")
    P, L, D, I = c_void_p, c_long, c_double, c_int  # noqa: E741
    signatures = {"roots": [P, P, P, P, L, L, D, D, P, I, P, I], "solve": [P, P, P, P, P, P, P, L, L, D, P, I]}
    function.argtypes, function.restype = signatures[name], L
    return function


def _workspace(A: Tensor) -> tuple[Tensor, int]:
    """Memory for as many threads as there is work for, and their number."""
    threads = min(torch.get_num_threads(), A.shape[0])
    return torch.empty(threads * _library().matroot_workspace(A.shape[-1]), dtype=A.dtype), threads


def _output(A: Tensor, asked: bool) -> Tensor:
    return torch.empty_like(A, memory_format=torch.contiguous_format) if asked else A.new_empty(0)


def _strides(A: Tensor | None) -> Any:
    return None if A is None else (c_long * 3)(*A.stride())


def _pointer(A: Tensor | None) -> int | None:
    return None if A is None or A.numel() == 0 else A.data_ptr()
