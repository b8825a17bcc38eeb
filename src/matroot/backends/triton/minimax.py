"""Roots and gradients by kernels, where there is Triton and a GPU for it."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from ..._tracing import constant_in_traces
from .launch import launch_known
from .tables import Schedules, coefficients

LARGEST = 1024
"""Larger matrices take other ways."""

_ON_CHIP = 64
"""Matrices of this size still fit on chip, one a program; larger ones are several programs' work."""


@constant_in_traces
@cache
def missing(device: torch.device) -> str | None:
    """What kernels lack on a CUDA device, in words: Triton, NVIDIA's instructions, or tensor cores for bfloat16."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    if torch.version.hip is not None:
        return "the GPU is not NVIDIA's"
    major, minor = torch.cuda.get_device_capability(device)
    return None if major >= 8 else f"the GPU has compute capability {major}.{minor}, kernels need 8.0"


def roots(A: Tensor, ridge: float, schedules: Callable[[], Schedules]) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots in float32 of the symmetric parts of ``A`` (k, n, n), n <= LARGEST.

    NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
    """
    n, strides = A.shape[-1], A.stride()
    S = torch.empty_like(A, dtype=torch.float32, memory_format=torch.contiguous_format)
    R = torch.empty_like(S)
    key = (n, A.dtype, strides, A.data_ptr() % 16 == 0)
    if n > _ON_CHIP:
        from .tiled.launch import roots as large_roots

        large_roots(A, S, R, ridge, widest(n, A.dtype), schedules, key)
    else:
        kernel, table, most, options = _for_roots(A.device, n, A.dtype, schedules)
        launch_known(kernel, (A.shape[0], 1, 1), (A, S, R, table, n, *strides, ridge, most), options, key)
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, for float32 (k, n, n); symmetric parts of the G's count."""
    out = torch.empty_like(S)
    n = S.shape[-1]
    has = {"HAS_S": GS is not None, "HAS_R": GR is not None}
    GS = S if GS is None else GS.contiguous()
    GR = S if GR is None else GR.contiguous()
    key = (n, *has.values(), *[T.data_ptr() % 16 == 0 for T in (S, R, GS, GR)])
    if n > _ON_CHIP:
        from .tiled.launch import solve as large_solve

        large_solve(S, R, GS, GR, out, ridge, has, key)
    else:
        kernel, options = _for_solve(n, S.is_cuda, *has.values())
        launch_known(kernel, (S.shape[0], 1, 1), (S, R, GS, GR, out, n, ridge), options, key)
    return out


@cache
def _for_roots(
    device: torch.device, n: int, dtype: torch.dtype, schedules: Callable[[], Schedules]
) -> tuple[Any, Tensor, float, dict[str, Any]]:
    """Kernel, table, last shift to try and options."""
    from .on_chip.roots import roots_kernel

    return roots_kernel, coefficients(device, schedules), widest(n, dtype), _with_cheap(n, device.type == "cuda")


@cache
def _for_solve(n: int, cuda: bool, has_S: bool, has_R: bool) -> tuple[Any, dict[str, Any]]:
    """Kernel and options."""
    from .on_chip.gradient import solve_kernel

    return solve_kernel, {"HAS_S": has_S, "HAS_R": has_R} | _with_cheap(n, cuda)


@cache
def widest(n: int, dtype: torch.dtype) -> float:
    """The last shift to try: rounding in float32, and that of the caller's dtype."""
    eps = torch.finfo(torch.float32).eps
    return 4 * n * eps + (torch.finfo(dtype).eps if dtype != torch.float32 else 0.0)


@cache
def on_chip(n: int) -> dict[str, int]:
    """Tile and warps of kernels with one matrix a program; measured on one H200."""
    size = max(16, 1 << (n - 1).bit_length())
    return {"N": size, "num_warps": {16: 1, 32: 2, 64: 4}[size]}


def _with_cheap(n: int, cuda: bool) -> dict[str, Any]:
    """And how products for corrections are made. ("tf32" gave NaN for odd n below 16 with Triton 3.6.)"""
    if not cuda:
        return on_chip(n) | {"CHEAP": "ieee"}
    # With fewer registers more programs fit on a multiprocessor; it is not worth it for other sizes.
    fewer = {"maxnreg": 112 if n <= 16 else 168} if n <= 32 else {}
    return on_chip(n) | {"CHEAP": "bf16x3"} | fewer
