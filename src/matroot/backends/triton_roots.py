"""Launching the fused kernels, where there is Triton and a GPU for it."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

Schedules = tuple[tuple[tuple[float, ...], ...], ...]
"""For easy, middling and hard matrices: six steps of five coefficients, the last of them Taylor's."""

LARGEST = 1024
"""Larger matrices take other ways."""

_ON_CHIP = 64
"""Matrices of this size still fit on chip, one a program; larger ones are shared by a group of programs."""


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
    n = A.shape[-1]
    S = torch.empty(A.shape, dtype=torch.float32, device=A.device)
    R = torch.empty_like(S)
    eps = torch.finfo(torch.float32).eps
    widest = 4 * n * eps + (torch.finfo(A.dtype).eps if A.dtype != torch.float32 else 0.0)
    table = _table(A.device, schedules)
    if n > _ON_CHIP:
        from .triton_tiled_roots import tiled_roots_kernel

        grid, memory, options = _groups(A)
        launch: Any = tiled_roots_kernel[grid]
        launch(A, S, R, table, *memory, n, *A.stride(), ridge, widest, **options)
    else:
        from .triton_kernels import roots_kernel

        launch = roots_kernel[(len(A),)]
        launch(A, S, R, table, n, *A.stride(), ridge, widest, **_launch(A))
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, for float32 (k, n, n); symmetric parts of the G's count."""
    out = torch.empty_like(S)
    n = S.shape[-1]
    GS, GR = (None if G is None else G.contiguous() for G in (GS, GR))
    inputs = (S, R, S if GS is None else GS, S if GR is None else GR, out)
    has = {"HAS_S": GS is not None, "HAS_R": GR is not None}
    if n > _ON_CHIP:
        from .triton_tiled_smith import tiled_smith_kernel

        grid, memory, options = _groups(S)
        launch: Any = tiled_smith_kernel[grid]
        launch(*inputs, *memory, n, ridge, **has, **options)
    else:
        from .triton_kernels import smith_kernel

        launch = smith_kernel[(len(S),)]
        launch(*inputs, n, ridge, **has, **_launch(S))
    return out


def _launch(A: Tensor) -> dict[str, Any]:
    """Tile, warps, and how float32 products are made of tensor core ones; measured on one H200."""
    size = max(16, 1 << (A.shape[-1] - 1).bit_length())
    return {"N": size, "PRECISION": _precision(A), "num_warps": {16: 1, 32: 2, 64: 4}[size]}


_RESIDENT = 2
"""Programs that fit on a multiprocessor at once: 4 warps with all the registers they can have, 113 KB each."""
_CACHE = 40 << 20
"""Bytes of scratch that stay in the L2 cache."""


def _groups(A: Tensor) -> tuple[tuple[int], tuple[Any, ...], dict[str, Any]]:
    """Grid, memory and options of a launch in which groups of programs share matrices."""
    from .triton_tiles import BUFFERS, LINE, SUMS

    batch, n = A.shape[:2]
    tile = 32 if n <= 128 else 64  # of the size alone, so that results do not depend on the batch
    across = -(-n // tile)
    size = across * tile
    programs = _RESIDENT * _multiprocessors(A.device)
    cached = _CACHE // (4 * BUFFERS.value * size * size)
    group, groups = _shape(across, batch, programs, cached) if A.is_cuda else (1, 1)
    slots = 1 << (across * across - 1).bit_length()
    memory = (
        torch.empty(groups, BUFFERS.value, size, size, dtype=torch.float32, device=A.device),
        torch.empty(groups, SUMS.value, slots, dtype=torch.float32, device=A.device),
        torch.zeros(groups, LINE.value, dtype=torch.int32, device=A.device),
        batch,
        groups,
        group,
    )
    options = {
        "SIZE": size,
        "TILE": tile,
        "DEPTH": 32,
        "SLOTS": slots,
        "PRECISION": _precision(A),
        "num_warps": 4,
        "num_stages": 3,
        "launch_cooperative_grid": True,  # programs wait for each other: all must be there
    }
    return (groups * group,), memory, options


@cache
def _shape(across: int, batch: int, programs: int, cached: int) -> tuple[int, int]:
    """Programs in a group, and groups: those with the fewest rounds of tiles, then the fewest programs."""
    half, full = across * (across + 1) // 2, across * across

    def groups(group: int) -> int:
        return min(batch, programs // group, max(1, cached))

    def cost(group: int) -> int:
        rounds = sum(often * -(-tiles // group) for often, tiles in ((8, half), (3, 2 * half), (3, full)))
        return rounds * -(-batch // groups(group))

    group = min(range(1, min(programs, 2 * full) + 1), key=cost)
    return group, groups(group)


def _precision(A: Tensor) -> str:
    return "bf16x6" if A.is_cuda else "ieee"


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def _table(device: torch.device, schedules: Schedules) -> Tensor:
    return torch.tensor(schedules, device="cpu").to(device, non_blocking=True)
