"""Minimax roots and Smith gradients by kernels, where there is Triton and a GPU for it.

Up to n = 64 one launch each way, one program per matrix; larger matrices take ``tiled``.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from ..._tracing import constant_in_traces
from .._base import readable
from ..torch_ops import rounding_tolerance
from .launch import launch_cached
from .layout import aligned, as_compiled
from .tables import Schedules, coefficients

LARGEST = 16384
"""Kernels are for matrices up to this size: offsets inside a matrix have 32 bits."""

_ON_CHIP = 64
"""Matrices up to this size fit on chip with both paths, one a program; several programs share a larger one."""


@constant_in_traces  # not the function with a cache itself, into which torch.compile would look
def unavailable_reason(device: torch.device) -> str | None:
    """Why kernels cannot run on a CUDA device: no Triton, not NVIDIA's, or no tensor cores for bfloat16; or None."""
    return _unavailable_reason(device)


@cache
def _unavailable_reason(device: torch.device) -> str | None:
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
    A = as_compiled(A)
    n, strides = A.shape[-1], A.stride()
    S = torch.empty_like(A, dtype=torch.float32, memory_format=torch.contiguous_format)
    R = torch.empty_like(S)
    key = (n, A.dtype)
    if n > _ON_CHIP:
        from .tiled.launch import roots as tiled_roots

        tiled_roots(A, S, R, ridge, rounding_tolerance(n, A.dtype), schedules, key)
    else:
        kernel, table, max_shift, options = _roots_launch(A.device, n, A.dtype, schedules)
        launch_cached(kernel, (A.shape[0], 1, 1), (A, S, R, table, n, *strides, ridge, max_shift), options, key)
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, float32 (k, n, n); symmetric parts of the G's count."""
    n, has_S, has_R = S.shape[-1], GS is not None, GR is not None
    S, R = (aligned(readable(T, torch.float32)) for T in (S, R))
    GS, GR = (S if G is None else aligned(readable(G, torch.float32)) for G in (GS, GR))
    out = torch.empty_like(S)
    key = (n, has_S, has_R)
    if n > _ON_CHIP:
        from .tiled.launch import solve as tiled_solve

        tiled_solve(S, R, GS, GR, out, ridge, has_S, has_R, key)
    else:
        kernel, options = _solve_launch(n, S.is_cuda, has_S, has_R)
        launch_cached(kernel, (S.shape[0], 1, 1), (S, R, GS, GR, out, n, ridge), options, key)
    return out


def batches_of_all_kernels(n: int, device: torch.device) -> tuple[int, ...]:
    """Batches of matrices of size n that between them launch every kernel which batches of any size do."""
    if n <= _ON_CHIP:
        return (1,)
    from .tiled.fast_launch import batches_of_all_kernels as of_tiled

    return of_tiled(n, device)


@cache
def _roots_launch(
    device: torch.device, n: int, dtype: torch.dtype, schedules: Callable[[], Schedules]
) -> tuple[Any, Tensor, float, dict[str, Any]]:
    """Kernel, table, last shift to try and options."""
    from .on_chip.roots import roots_kernel

    options = _minimax_options(n, device.type == "cuda")
    return roots_kernel, coefficients(device, schedules), rounding_tolerance(n, dtype), options


@cache
def _solve_launch(n: int, cuda: bool, has_S: bool, has_R: bool) -> tuple[Any, dict[str, Any]]:
    """Kernel and options."""
    from .on_chip.gradient import solve_kernel

    return solve_kernel, {"HAS_S": has_S, "HAS_R": has_R} | _minimax_options(n, cuda)


@cache
def on_chip_options(n: int) -> dict[str, int]:
    """Tile and warps of kernels with one program per matrix; measured on one H200."""
    size = max(16, 1 << (n - 1).bit_length())
    return {"N": size, "num_warps": {16: 1, 32: 2, 64: 4}[size]}


def _minimax_options(n: int, cuda: bool) -> dict[str, Any]:
    """The same, and the precision of products in corrections. ("tf32" gave NaN for odd n below 16, Triton 3.6.)"""
    if not cuda:
        return on_chip_options(n) | {"CORRECTION_PRECISION": "ieee"}
    # With fewer registers more programs fit on a multiprocessor; it does not pay for other sizes.
    registers = {"maxnreg": 112 if n <= 16 else 168} if n <= 32 else {}
    return on_chip_options(n) | {"CORRECTION_PRECISION": "bf16x3"} | registers
