"""Minimax roots and Smith gradients by kernels, where there is Triton and a GPU for it.

Up to n = 64 one launch each way, one program per matrix; larger matrices take ``tiled``.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ..._tracing import constant_in_traces
from .._base import readable
from ..torch_ops import rounding_tolerance
from . import driver
from .compile_together import compile_together
from .layout import aligned, as_compiled
from .on_chip import launch as on_chip
from .tables import Schedules

LARGEST = 16384
"""Kernels are for matrices up to this size: offsets inside a matrix have 32 bits."""


@constant_in_traces  # not the function with a cache itself, into which torch.compile would look
def unavailable_reason(device: torch.device) -> str | None:
    """Why kernels cannot run on a CUDA device, or None: no Triton, not NVIDIA's, no tensor cores for bfloat16, or
    Triton does not start."""
    return _unavailable_reason(device)


@cache
def _unavailable_reason(device: torch.device) -> str | None:
    if find_spec("triton") is None:
        return "Triton is not installed"
    if torch.version.hip is not None:
        return "the GPU is not NVIDIA's"
    major, minor = torch.cuda.get_device_capability(device)
    if major < 8:
        return f"the GPU has compute capability {major}.{minor}, kernels need 8.0"
    return driver.failure()


_prepared: set[tuple] = set()


def prepare(A: Tensor, ridge: float, schedules: Callable[[], Schedules], cotangents: tuple[bool, bool] | None) -> None:
    """Compile all kernels for matrices like ``A`` (k, n, n) at once, unless that was done before.

    cotangents: whether those of the root and of the inverse root will follow; None: no gradient will.
    """
    n = A.shape[-1]
    key = (A.device, A.dtype, n, min(len(A), batches_of_all_kernels(n, A.device)[-1]), cotangents)
    if key in _prepared:
        return
    _prepared.add(key)
    with compile_together():
        S, R = roots(A, ridge, schedules)
        if cotangents is not None:
            GS, GR = (T if there else None for T, there in zip((S, R), cotangents, strict=True))
            solve(S, R, GS, GR, ridge)


def roots(A: Tensor, ridge: float, schedules: Callable[[], Schedules]) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots in float32 of the symmetric parts of ``A`` (k, n, n), n <= LARGEST.

    NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
    """
    A = as_compiled(A)
    n, tolerance = A.shape[-1], rounding_tolerance(A.shape[-1], A.dtype)
    S = torch.empty_like(A, dtype=torch.float32, memory_format=torch.contiguous_format)
    R = torch.empty_like(S)
    key = (n, A.dtype)
    if n > on_chip.LARGEST:
        from .tiled.launch import roots as tiled_roots

        tiled_roots(A, S, R, ridge, tolerance, schedules, key)
    else:
        on_chip.roots(A, S, R, ridge, tolerance, key)
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, float32 (k, n, n); symmetric parts of the G's count."""
    n, has_S, has_R = S.shape[-1], GS is not None, GR is not None
    S, R = _operand(S), _operand(R)
    GS, GR = S if GS is None else _operand(GS), S if GR is None else _operand(GR)
    out = torch.empty_like(S)
    key = (n, has_S, has_R)
    if n > on_chip.LARGEST:
        from .tiled.launch import solve as tiled_solve

        tiled_solve(S, R, GS, GR, out, ridge, has_S, has_R, key)
    else:
        on_chip.solve(S, R, GS, GR, out, ridge, has_S, has_R, key)
    return out


def _operand(T: Tensor) -> Tensor:
    return aligned(readable(T, torch.float32))


def batches_of_all_kernels(n: int, device: torch.device) -> tuple[int, ...]:
    """Batches of matrices of size n that between them launch every kernel which batches of any size do."""
    if n <= on_chip.LARGEST:
        return (1,)
    from .tiled.launch import batches_of_all_kernels as of_tiled

    return of_tiled(n, device)
