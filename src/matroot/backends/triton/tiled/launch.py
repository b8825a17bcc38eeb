"""Launching the kernels for matrices that do not always fit on chip.

Easy matrices take one launch if all their tiles, or up to a size of 128 they themselves, can be at work at once, and
else a launch for every phase. The others are left for a launch at the end in which groups of programs share a matrix
and a product has more digits. Nobody waits to learn which are which.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..launch import at, launch_known, resident
from ..on_chip.fast import easy_roots_kernel, easy_solve_kernel
from ..tables import Schedules, coefficients
from . import fast_launch as phases
from . import tiles as tiles
from .robust_gradient import tiled_smith_kernel
from .robust_roots import tiled_roots_kernel

_MIDDLE = 128
"""Easy matrices of this size still fit on chip, one a program."""
_ON_CHIP = {"N": 128, "num_warps": 8}


def roots(
    A: Tensor, S: Tensor, R: Tensor, ridge: float, widest: float, schedules: Callable[[], Schedules], key: tuple
) -> None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n)."""
    n, strides = A.shape[-1], A.stride()
    members = phases.members(A)
    left = _marks(A, members)
    table = coefficients(A.device, schedules)
    with at(A.device):
        if not members and n <= _MIDDLE and _has_room(A.device):
            arguments = (A, S, R, left, table, n, *strides, ridge)
            launch_known(easy_roots_kernel, (len(A), 1, 1), arguments, _ON_CHIP, key)
        else:
            phases.roots(A, S, R, left, table, ridge, members, key)
        grid, memory, options = _groups(A, left)
        arguments = (A, S, R, table, *memory, n, *strides, ridge, widest)
        launch_known(tiled_roots_kernel, grid, arguments, options, key)


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has: dict[str, bool], key: tuple
) -> None:
    """X with S X + X S = GS - R GR R and the ridge's share into ``out``, of what is there of GS and GR."""
    n = S.shape[-1]
    members = phases.members(S)
    left = _marks(S, members)
    with at(S.device):
        if not members and n <= _MIDDLE and _has_room(S.device):
            arguments = (S, R, GS, GR, out, left, n, ridge)
            launch_known(easy_solve_kernel, (len(S), 1, 1), arguments, has | _ON_CHIP, key)
        else:
            phases.solve((S, R, GS, GR), out, left, ridge, has, members, key)
        grid, memory, options = _groups(S, left)
        launch_known(tiled_smith_kernel, grid, (S, R, GS, GR, out, *memory, n, ridge), has | options, key)


@cache
def _has_room(device: torch.device) -> bool:
    """Whether a multiprocessor has the shared memory for kernels on chip."""
    return device.type != "cuda" or torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= 227 << 10


def _marks(A: Tensor, members: int) -> Tensor:
    """Room for what kernels note about each matrix for those that follow; programs that meet count from zero."""
    room = torch.zeros if members else torch.empty
    return room(len(A), tiles.LINE.value, dtype=torch.int32, device=A.device)


_CACHE = 40 << 20
"""Bytes of scratch that stay in the L2 cache."""


def _groups(A: Tensor, left: Tensor) -> tuple[tuple[int, int, int], tuple[Any, ...], dict[str, Any]]:
    """Grid, memory and options of a launch in which groups of programs share matrices."""
    batch, n = A.shape[:2]
    options = _in_groups(n)
    side, tile = options["side"], options["TILE"]
    cached = _CACHE // (4 * tiles.BUFFERS.value * side * side)
    group, groups = _shape(side // tile, batch, resident(A.device, 74), cached) if A.is_cuda else (1, 1)
    scratch = torch.empty(groups, tiles.BUFFERS.value, side, side, dtype=torch.float32, device=A.device)
    sums = torch.empty(groups, tiles.SUMS.value, tiles.SLOTS.value, dtype=torch.float32, device=A.device)
    return (groups * group, 1, 1), (scratch, sums, left, batch, groups, group), options


@cache
def _in_groups(n: int) -> dict[str, Any]:
    """Options of that launch, of the size alone, so that results do not depend on the batch."""
    tile = 32 if n <= 128 else 64
    return {
        "side": -(-n // tile) * tile,
        "TILE": tile,
        "DEPTH": 32,
        "num_warps": 4,
        "num_stages": 3,
        "launch_cooperative_grid": True,  # programs wait for each other: all must be there
    }


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
