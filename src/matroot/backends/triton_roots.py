"""Launching the fused kernels, where there is Triton and a GPU for it."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

Schedules = tuple[tuple[tuple[float, ...], ...], ...]
"""For easy, middling and hard matrices: six steps of five coefficients, the last of them Taylor's."""

LARGEST = 64
"""Matrices of this size still fit on chip, one a program."""


@cache
def available(device: torch.device) -> bool:
    """Whether kernels can run there: Triton is installed, the GPU has tensor cores for bfloat16."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def roots(A: Tensor, ridge: float, schedules: Schedules) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots in float32 of the symmetric parts of ``A`` (k, n, n), n <= LARGEST.

    NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
    """
    from .triton_kernels import roots_kernel

    n = A.shape[-1]
    S = torch.empty(A.shape, dtype=torch.float32, device=A.device)
    R = torch.empty_like(S)
    eps = torch.finfo(torch.float32).eps
    widest = 4 * n * eps + (torch.finfo(A.dtype).eps if A.dtype != torch.float32 else 0.0)
    table = _table(A.device, schedules)
    size, warps, precision = _launch(n, A)
    launch: Any = roots_kernel[(len(A),)]
    launch(A, S, R, table, n, *A.stride(), ridge, widest, N=size, PRECISION=precision, num_warps=warps)
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, for float32 (k, n, n); symmetric parts of the G's count."""
    from .triton_kernels import smith_kernel

    out = torch.empty_like(S)
    size, warps, precision = _launch(S.shape[-1], S)
    GS, GR = (None if G is None else G.contiguous() for G in (GS, GR))
    inputs = (S, R, S if GS is None else GS, S if GR is None else GR, out, S.shape[-1], ridge)
    has = {"HAS_S": GS is not None, "HAS_R": GR is not None}
    launch: Any = smith_kernel[(len(S),)]
    launch(*inputs, **has, N=size, PRECISION=precision, num_warps=warps)
    return out


def _launch(n: int, like: Tensor) -> tuple[int, int, str]:
    """Tile, warps, and how float32 products are made of tensor core ones; measured on one H200."""
    size = max(16, 1 << (n - 1).bit_length())
    return size, {16: 1, 32: 2, 64: 4}[size], "bf16x6" if like.is_cuda else "ieee"


@cache
def _table(device: torch.device, schedules: Schedules) -> Tensor:
    return torch.tensor(schedules, device="cpu").to(device, non_blocking=True)
