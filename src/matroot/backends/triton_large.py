"""Launching the kernels for matrices that do not always fit on chip.

Easy matrices take one launch up to a size of 128, above that a launch for every product, one program per tile. The
others are left for a launch at the end in which groups of programs share a matrix and a product has more digits. Nobody
waits to learn which are which.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from . import triton_streamed_roots as streamed
from . import triton_streamed_solve as streamed_solve
from . import triton_tiles as tiles
from .triton_launch import Row, at, launch_known, on_device
from .triton_middle import easy_roots_kernel, easy_solve_kernel
from .triton_planes import BUFFERS, SUMS
from .triton_roots import Schedules
from .triton_tiled_roots import tiled_roots_kernel
from .triton_tiled_smith import tiled_smith_kernel

_MIDDLE = 128
"""Easy matrices of this size still fit on chip, one a program."""
_ON_CHIP = {"N": 128, "num_warps": 8}
_TILE = 64
_SCRATCH = 1 << 29
"""Bytes of scratch for easy matrices; larger batches take turns."""
_TAYLOR = (0.0, 0.5, 0.375, 0.3125, 0.2734375)
"""Of (1 - e)^(-1/2) - 1 in powers of e."""


def roots(
    A: Tensor, S: Tensor, R: Tensor, ridge: float, widest: float, schedules: Callable[[], Schedules], key: tuple
) -> None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n)."""
    n, strides = A.shape[-1], A.stride()
    left = _marks(A)
    table, easy_table = _tables(A.device, schedules)
    with at(A.device):
        if n <= _MIDDLE and _has_room(A.device):
            arguments = (A, S, R, left, table, n, *strides, ridge)
            launch_known(easy_roots_kernel, (len(A), 1, 1), arguments, _ON_CHIP, key)
        else:
            for part in _parts(A):
                _streamed_roots(A[part], S[part], R[part], left[part], easy_table, ridge, key)
        grid, memory, options = _groups(A, left)
        arguments = (A, S, R, table, *memory, n, *strides, ridge, widest)
        launch_known(tiled_roots_kernel, grid, arguments, options, key)


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has: dict[str, bool], key: tuple
) -> None:
    """X with S X + X S = GS - R GR R and the ridge's share into ``out``, of what is there of GS and GR."""
    n = S.shape[-1]
    left = _marks(S)
    with at(S.device):
        if n <= _MIDDLE and _has_room(S.device):
            arguments = (S, R, GS, GR, out, left, n, ridge)
            launch_known(easy_solve_kernel, (len(S), 1, 1), arguments, has | _ON_CHIP, key)
        else:
            for part in _parts(S):
                _streamed_solve(S[part], R[part], GS[part], GR[part], out[part], left[part], ridge, has, key)
        grid, memory, options = _groups(S, left)
        launch_known(tiled_smith_kernel, grid, (S, R, GS, GR, out, *memory, n, ridge), has | options, key)


def _streamed_roots(A: Tensor, S: Tensor, R: Tensor, left: Tensor, table: Tensor, ridge: float, key: tuple) -> None:
    n, strides = A.shape[-1], A.stride()
    scratch, sums, half, _, options = _planes(A)
    facts = _numbers(A, 2)
    row = Row(options, A.device, key)
    row.launch(streamed.scale_kernel, half, (A, scratch, facts, left, n, *strides, ridge))
    row.launch(streamed.square_kernel, half, (scratch, sums, left))
    row.launch(streamed.start_kernel, half, (scratch, sums, facts, left, table, n))
    for last in (False, True):
        row.launch(streamed.gap_kernel, half, (scratch, left, n), LAST=last)
        row.launch(streamed.terms_kernel, half, (scratch, sums, left, table, n), LAST=last)
        row.launch(streamed.rest_kernel, half, (scratch, sums, left), LAST=last)
        row.launch(streamed.correct_kernel, 2 * half, (scratch, sums, facts, left, S, R, n), LAST=last)


def _streamed_solve(
    S: Tensor,
    R: Tensor,
    GS: Tensor,
    GR: Tensor,
    out: Tensor,
    left: Tensor,
    ridge: float,
    has: dict[str, bool],
    key: tuple,
) -> None:
    n = S.shape[-1]
    scratch, sums, half, full, options = _planes(S)
    facts = _numbers(S, 4)
    given = (S, R, GS, GR)
    row = Row(options, S.device, key)
    row.launch(streamed_solve.measure_kernel, half, (*given, sums, n), **has)
    row.launch(streamed_solve.prepare_kernel, half, (*given, scratch, sums, facts, left, n), **has)
    if has["HAS_R"]:
        row.launch(streamed_solve.half_turn_kernel, full, (scratch, left))
        row.launch(streamed_solve.turn_kernel, half, (scratch, facts, left, GS, n), HAS_S=has["HAS_S"])
    row.launch(streamed_solve.survey_kernel, full + half, (scratch, sums, left, n))
    row.launch(streamed_solve.begin_kernel, half, (scratch, sums, facts, left, n))
    ends = (scratch, sums, facts, left, out, n, ridge)
    for second in (False, True):
        if second:
            row.launch(streamed_solve.again_kernel, half, (scratch, facts, left))
        for step in range(1, streamed_solve.STEPS.value + 1):
            row.launch(streamed_solve.iterate_kernel, half, (*ends, step), SECOND=second)
    if ridge:
        row.launch(streamed_solve.ridge_kernel, half, ends)


@cache
def _tables(device: torch.device, schedules: Callable[[], Schedules]) -> tuple[Tensor, Tensor]:
    """All schedules, and that of easy matrices where there is a launch for every product."""
    return on_device(device, schedules()), on_device(device, _steps(schedules()))


@cache
def _has_room(device: torch.device) -> bool:
    """Whether a multiprocessor has the shared memory for kernels on chip."""
    return device.type != "cuda" or torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= 227 << 10


def _steps(schedules: Schedules) -> Schedules:
    """The first schedule for easy matrices: its first step, then corrections in powers of I - M, the last Taylor's."""
    first, (c0, c1, c2, c3, c4), *_ = schedules[0]
    powers = (c0 + c1 + c2 + c3 + c4 - 1, -c1 - 2 * c2 - 3 * c3 - 4 * c4, c2 + 3 * c3 + 6 * c4, -c3 - 4 * c4, c4)
    return ((first, powers, _TAYLOR),)


def _padded(n: int, tile: int) -> int:
    return -(-n // tile) * tile


def _parts(A: Tensor) -> Iterator[slice]:
    """Parts of the batch, so that the scratch of each is not too large; all begin where memory is as aligned."""
    side = _padded(A.shape[-1], _TILE)
    count = max(8, _SCRATCH // (4 * BUFFERS.value * side * side) // 8 * 8)
    return (slice(start, start + count) for start in range(0, len(A), count))


def _marks(A: Tensor) -> Tensor:
    """Room for what kernels note about each matrix for those that follow."""
    return torch.empty(len(A), tiles.LINE.value, dtype=torch.int32, device=A.device)


def _numbers(A: Tensor, count: int) -> Tensor:
    """Room for some numbers about each matrix."""
    return torch.empty(len(A), count, dtype=torch.float32, device=A.device)


def _planes(A: Tensor) -> tuple[Tensor, Tensor, int, int, dict[str, Any]]:
    """Scratch and sums for kernels with one program per tile; programs for half the tiles and for all; options."""
    batch, n = A.shape[:2]
    side = _padded(n, _TILE)
    across = side // _TILE
    half = across * (across + 1) // 2
    scratch = torch.empty(batch, BUFFERS.value, 2, side, side, dtype=torch.float16, device=A.device)
    sums = torch.empty(batch, SUMS.value, tiles.SLOTS.value, dtype=torch.float32, device=A.device)
    options = {"side": side, "TILE": _TILE, "DEPTH": _TILE}
    return scratch, sums, batch * half, batch * across * across, options


@cache
def _resident(device: torch.device) -> int:
    """Programs on all multiprocessors at once: 4 warps with all the registers they can have, 72 KB each."""
    if device.type != "cuda":
        return 1
    each = torch.cuda.get_device_properties(device)
    return min(2, each.shared_memory_per_multiprocessor // (74 << 10)) * each.multi_processor_count


_CACHE = 40 << 20
"""Bytes of scratch that stay in the L2 cache."""


def _groups(A: Tensor, left: Tensor) -> tuple[tuple[int, int, int], tuple[Any, ...], dict[str, Any]]:
    """Grid, memory and options of a launch in which groups of programs share matrices."""
    batch, n = A.shape[:2]
    options = _in_groups(n)
    side, tile = options["side"], options["TILE"]
    cached = _CACHE // (4 * tiles.BUFFERS.value * side * side)
    group, groups = _shape(side // tile, batch, _resident(A.device), cached) if A.is_cuda else (1, 1)
    scratch = torch.empty(groups, tiles.BUFFERS.value, side, side, dtype=torch.float32, device=A.device)
    sums = torch.empty(groups, tiles.SUMS.value, tiles.SLOTS.value, dtype=torch.float32, device=A.device)
    return (groups * group, 1, 1), (scratch, sums, left, batch, groups, group), options


@cache
def _in_groups(n: int) -> dict[str, Any]:
    """Options of that launch, of the size alone, so that results do not depend on the batch."""
    tile = 32 if n <= 128 else 64
    return {
        "side": _padded(n, tile),
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
