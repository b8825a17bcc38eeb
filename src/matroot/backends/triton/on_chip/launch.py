"""One launch each way, one program per matrix, everything on chip: up to n = 64, and if need be up to 128."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..launch import launch_cached
from .schedules import coefficients

LARGEST = 64
"""Matrices up to this size fit on chip."""
LARGEST_WITH_SPILLS = 128
"""Up to this size, if some of what registers hold is spilled, and the GPU has the shared memory."""
SHARED_MEMORY_WITH_SPILLS = 227 << 10


@cache
def can_take(n: int, device: torch.device) -> bool:
    """Whether matrices of size n, on chip only if need be, have the room there."""
    if n <= LARGEST or device.type != "cuda":
        return n <= LARGEST_WITH_SPILLS
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    return n <= LARGEST_WITH_SPILLS and room >= SHARED_MEMORY_WITH_SPILLS


def roots(A: Tensor, S: Tensor, R: Tensor, ridge: float, max_shift: float, key: tuple) -> None:
    """Write roots and inverse roots of the symmetric parts of ``A`` (k, n, n) to ``S`` and ``R``, contiguous float32.

    NaN for matrices that hold NaN or Inf, or that are not positive even when ``max_shift`` of a bound of their largest
    eigenvalue is added to all. ``key`` is that of ``launch_cached``.
    """
    n = A.shape[-1]
    kernel, table, options = _roots_launch(A.device, n)
    launch_cached(kernel, (A.shape[0], 1, 1), (A, S, R, table, n, *A.stride(), ridge, max_shift), options, key)


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has_S: bool, has_R: bool, key: tuple
) -> None:
    """Write X with S X + X S = GS - R GR R and the ridge's share to ``out``; all float32 (k, n, n), contiguous.

    What there is not may be any tensor. Symmetric parts of GS and GR count.
    """
    n = S.shape[-1]
    kernel, options = _solve_launch(n, S.is_cuda, has_S, has_R)
    launch_cached(kernel, (S.shape[0], 1, 1), (S, R, GS, GR, out, n, ridge), options, key)


@cache
def _roots_launch(device: torch.device, n: int) -> tuple[Any, Tensor, dict[str, Any]]:
    """Kernel, table and options."""
    from .roots import roots_kernel

    return roots_kernel, coefficients(device), _options(n, device.type == "cuda")


@cache
def _solve_launch(n: int, cuda: bool, has_S: bool, has_R: bool) -> tuple[Any, dict[str, Any]]:
    """Kernel and options."""
    from .gradient import solve_kernel

    return solve_kernel, {"HAS_S": has_S, "HAS_R": has_R} | _options(n, cuda)


@cache
def tile_and_warps(n: int) -> dict[str, int]:
    """Options of kernels with one program per matrix; measured on one H200."""
    size = max(16, 1 << (n - 1).bit_length())
    return {"N": size, "num_warps": {16: 1, 32: 2, 64: 4, 128: 8}[size]}


def _options(n: int, cuda: bool) -> dict[str, Any]:
    """With fewer registers more programs fit on a multiprocessor; it does not pay above 32."""
    registers = {"maxnreg": 112 if n <= 16 else 168} if cuda and n <= 32 else {}
    return tile_and_warps(n) | registers
