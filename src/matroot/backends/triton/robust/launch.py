"""Launching the robust path: one cooperative launch in which groups of programs share the deferred matrices."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..launch import launch_cached
from ..tiled.occupancy import WARPS, resident_programs
from . import gradient, roots_input
from .gradient import robust_gradient_kernel
from .roots import robust_roots_kernel
from .schedule import coefficients
from .tiles import BUFFERS

_DEPTH = 64
"""Columns of the left factor that are loaded at a time; half of them where shared memory is small."""
_LARGE_TILE = 128
_LARGE_TILE_SHARED_MEMORY = 192 << 10
_LARGE_TILE_FROM = 1280
"""Size from which large tiles, which load less, leave no multiprocessor without work."""
_MAX_SCRATCH = 256 << 20
"""Bytes of scratch; for one group at least."""


def roots(A: Tensor, S: Tensor, R: Tensor, deferred: Tensor, ridge: float, max_shift: float, key: tuple) -> None:
    """Roots into S and inverse roots into R of the deferred matrices of ``A`` (k, n, n)."""
    tensors, n = (A, S, R, coefficients(A.device)), A.shape[-1]
    numbers = (n, *A.stride(), ridge, max_shift)
    _launch(robust_roots_kernel, tensors, roots_input.SUM_ROWS.value, deferred, numbers, n, key)


def solve(
    inputs: tuple[Tensor, ...], out: Tensor, deferred: Tensor, ridge: float, has_S: bool, has_R: bool, key: tuple
) -> None:
    """X with S X + X S = GS - R GR R into ``out``, given S, R, GS and GR, for the deferred matrices."""
    n = out.shape[-1]
    numbers = (n, int(has_S), int(has_R), ridge)
    _launch(robust_gradient_kernel, (*inputs, out), gradient.SUM_ROWS.value, deferred, numbers, n, key)


def _launch(
    kernel: Any, tensors: tuple[Tensor, ...], sum_rows: int, deferred: Tensor, numbers: tuple, n: int, key: tuple
) -> None:
    batch, device, options = len(deferred), deferred.device, _options(n, deferred.device)
    side, tile_rows = options["side"], options["side"] // options["TILE"]

    def arguments(groups: int, programs: int) -> tuple:
        scratch, sums = _memory(groups, side, (sum_rows, tile_rows * tile_rows), device)
        return *tensors, scratch, sums, deferred, batch, groups, programs, *numbers, _padded(n, options["DEPTH"])

    resident = resident_programs(kernel, lambda: arguments(1, 1), options, device, key)
    if not resident:  # how much shared memory code needs differs between GPUs with as much of it
        options = options | {"DEPTH": options["DEPTH"] // 2}
        resident = resident_programs(kernel, lambda: arguments(1, 1), options, device, key)
    resident = max(1, resident)
    max_groups = max(1, _MAX_SCRATCH // (4 * BUFFERS.value * side * side))
    programs, groups = _group_shape(tile_rows, batch, resident, max_groups)
    launch_cached(kernel, (groups * programs, 1, 1), arguments(groups, programs), options, key)


def _memory(groups: int, side: int, slots: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Scratch and sums of each group, uninitialised."""
    scratch = torch.empty(groups, BUFFERS.value, 2, side, side, dtype=torch.float16, device=device)
    return scratch, torch.empty(groups, *slots, dtype=torch.float32, device=device)


def _padded(n: int, tile: int) -> int:
    return -(-n // tile) * tile


@cache
def _options(n: int, device: torch.device) -> dict[str, Any]:
    """Options by the size alone: results do not depend on the batch."""
    is_large = n >= _LARGE_TILE_FROM
    tile = _LARGE_TILE if is_large else _DEPTH
    return {
        "side": _padded(n, tile),
        "TILE": tile,
        "DEPTH": _DEPTH if not is_large or _has_room(device) else _DEPTH // 2,
        "num_warps": 2 * WARPS if is_large else WARPS,
        "num_stages": 3,
        "launch_cooperative_grid": True,
    }


def _has_room(device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _LARGE_TILE_SHARED_MEMORY


@cache
def _group_shape(tile_rows: int, batch: int, resident: int, max_groups: int) -> tuple[int, int]:
    """Programs per group, and groups: those with the fewest rounds of tiles, then the fewest programs."""
    lower_tiles, all_tiles = tile_rows * (tile_rows + 1) // 2, tile_rows * tile_rows
    phases = ((2, lower_tiles), (3, 2 * lower_tiles), (6, all_tiles))  # typical numbers of phases of so many tiles

    def groups(programs: int) -> int:
        return min(batch, resident // programs, max_groups)

    def rounds(programs: int) -> int:
        return sum(count * -(-tiles // programs) for count, tiles in phases) * -(-batch // groups(programs))

    programs = min(range(1, min(resident, 2 * all_tiles) + 1), key=rounds)
    return programs, groups(programs)
