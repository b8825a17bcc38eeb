"""Launching the robust path: one cooperative launch in which groups of programs share the deferred matrices."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..launch import launch_cached
from .occupancy import WARPS, resident_programs
from .robust_gradient import robust_gradient_kernel
from .robust_roots import robust_roots_kernel
from .split_integer import SUM_ROWS
from .tiles import BUFFERS, SLOTS

_MAX_SCRATCH = 40 << 20
"""Bytes of scratch that stay in the L2 cache."""


def roots(
    A: Tensor, S: Tensor, R: Tensor, table: Tensor, deferred: Tensor, ridge: float, max_shift: float, key: tuple
) -> None:
    """Roots into S and inverse roots into R of the deferred matrices of ``A`` (k, n, n)."""
    n = A.shape[-1]
    numbers = (n, *A.stride(), ridge, max_shift)
    _launch(robust_roots_kernel, (A, S, R, table), deferred, numbers, _options(n), key)


def solve(
    inputs: tuple[Tensor, ...],
    out: Tensor,
    deferred: Tensor,
    ridge: float,
    has_cotangent: dict[str, bool],
    key: tuple,
) -> None:
    """X with S X + X S = GS - R GR R into ``out``, given S, R, GS and GR, for the deferred matrices."""
    n = out.shape[-1]
    _launch(robust_gradient_kernel, (*inputs, out), deferred, (n, ridge), has_cotangent | _options(n), key)


def _launch(
    kernel: Any, tensors: tuple[Tensor, ...], deferred: Tensor, numbers: tuple, options: dict[str, Any], key: tuple
) -> None:
    batch, device = len(deferred), deferred.device
    side, tile = options["side"], options["TILE"]

    def arguments(groups: int, programs: int) -> tuple:
        scratch = torch.empty(groups, BUFFERS.value, side, side, dtype=torch.float32, device=device)
        sums = torch.empty(groups, SUM_ROWS.value, SLOTS.value, dtype=torch.float32, device=device)
        return *tensors, scratch, sums, deferred, batch, groups, programs, *numbers

    resident = max(1, resident_programs(kernel, lambda: arguments(1, 1), options, device, key))
    max_groups = max(1, _MAX_SCRATCH // (4 * BUFFERS.value * side * side))
    programs, groups = _group_shape(side // tile, batch, resident, max_groups)
    launch_cached(kernel, (groups * programs, 1, 1), arguments(groups, programs), options, key)


@cache
def _options(n: int) -> dict[str, Any]:
    """Options by the size alone: results do not depend on the batch."""
    tile = 32 if n <= 128 else 64
    return {
        "side": -(-n // tile) * tile,
        "TILE": tile,
        "DEPTH": 32,
        "num_warps": WARPS,
        "num_stages": 3,
        "launch_cooperative_grid": True,
    }


@cache
def _group_shape(tile_rows: int, batch: int, resident: int, max_groups: int) -> tuple[int, int]:
    """Programs per group, and groups: those with the fewest rounds of tiles, then the fewest programs."""
    lower_tiles, all_tiles = tile_rows * (tile_rows + 1) // 2, tile_rows * tile_rows
    phases = ((8, lower_tiles), (3, 2 * lower_tiles), (3, all_tiles))  # typical numbers of phases of so many tiles

    def groups(programs: int) -> int:
        return min(batch, resident // programs, max_groups)

    def rounds(programs: int) -> int:
        return sum(count * -(-tiles // programs) for count, tiles in phases) * -(-batch // groups(programs))

    programs = min(range(1, min(resident, 2 * all_tiles) + 1), key=rounds)
    return programs, groups(programs)
