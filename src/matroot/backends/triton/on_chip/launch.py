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
"""Matrices up to this size fit if some of what registers hold is spilled."""
FAST, COMPLETE, PHASES, NARROW = WAYS = "fast", "complete", "phases", "narrow"
LARGE_BATCHES = FAST
"""How batches too large for a cooperative launch are computed between the two sizes: FAST, by the fast path on chip,
which defers some matrices; COMPLETE, by these kernels, which defer none; PHASES, by the launches of larger matrices;
NARROW, by the same with less padding up to n = 96, which then cooperative launches have too."""


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
