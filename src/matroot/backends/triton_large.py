"""Launching the kernels for matrices that do not always fit on chip.

Easy matrices take one launch up to a size of 128, above that a launch for every product, one program per tile. The
others are left for a launch at the end in which groups of programs share a matrix and a product has more digits. Nobody
waits to learn which are which.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from . import triton_streamed_roots as streamed
from . import triton_streamed_solve as streamed_solve
from . import triton_tiles as tiles
from .triton_launch import Row, at, launch, on_device
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


def roots(A: Tensor, S: Tensor, R: Tensor, ridge: float, widest: float, schedules: Schedules) -> None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n)."""
    n, strides = A.shape[-1], A.stride()
    left = _marks(A)
    table = on_device(A.device, schedules)
    with at(A.device):
        if n <= _MIDDLE and _has_room(A.device):
            arguments = (A, S, R, left, table, n, *strides, ridge)
            launch(easy_roots_kernel, (len(A), 1, 1), arguments, _ON_CHIP, strides)
        else:
            for part in _parts(A):
                _streamed_roots(A[part], S[part], R[part], left[part], ridge, schedules)
        grid, memory, options = _groups(A, left)
        launch(tiled_roots_kernel, grid, (A, S, R, table, *memory, n, *strides, ridge, widest), options, strides)


def solve(S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has: dict[str, bool]) -> None:
    """X with S X + X S = GS - R GR R and the ridge's share into ``out``, of what is there of GS and GR."""
    n = S.shape[-1]
    left = _marks(S)
    with at(S.device):
        if n <= _MIDDLE and _has_room(S.device):
            launch(easy_solve_kernel, (len(S), 1, 1), (S, R, GS, GR, out, left, n, ridge), has | _ON_CHIP)
        else:
            for part in _parts(S):
                _streamed_solve(S[part], R[part], GS[part], GR[part], out[part], left[part], ridge, has)
        grid, memory, options = _groups(S, left)
        launch(tiled_smith_kernel, grid, (S, R, GS, GR, out, *memory, n, ridge), has | options)


def _streamed_roots(A: Tensor, S: Tensor, R: Tensor, left: Tensor, ridge: float, schedules: Schedules) -> None:
    n, strides = A.shape[-1], A.stride()
    scratch, sums, half, _, options = _planes(A)
    facts = _numbers(A, 2)
    table = on_device(A.device, _steps(schedules))
    row = Row(options, (A, left, S, R), n, strides)
    row.launch(streamed.scale_kernel, half, (A, scratch, facts, left, n, *strides, ridge))
    row.launch(streamed.square_kernel, half, (scratch, sums, left))
    row.launch(streamed.start_kernel, half, (scratch, sums, facts, left, table, n))
    for last in (False, True):
        row.launch(streamed.gap_kernel, half, (scratch, left, n), LAST=last)
        row.launch(streamed.terms_kernel, half, (scratch, sums, left, table, n), LAST=last)
        row.launch(streamed.rest_kernel, half, (scratch, sums, left), LAST=last)
        row.launch(streamed.correct_kernel, 2 * half, (scratch, sums, facts, left, S, R, n), LAST=last)


def _streamed_solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, left: Tensor, ridge: float, has: dict[str, bool]
) -> None:
    n = S.shape[-1]
    scratch, sums, half, full, options = _planes(S)
    facts = _numbers(S, 4)
    given = (S, R, GS, GR)
    row = Row(options, (*given, left, out), n)
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
def _has_room(device: torch.device) -> bool:
    """Whether a multiprocessor has the shared memory for kernels on chip."""
    return device.type != "cuda" or torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= 227 << 10


@cache
def _steps(schedules: Schedules) -> Schedules:
    """The first schedule for easy matrices: its first step, then corrections in powers of I - M, the last Taylor's."""
    first, (c0, c1, c2, c3, c4), *_ = schedules[0]
    powers = (c0 + c1 + c2 + c3 + c4 - 1, -c1 - 2 * c2 - 3 * c3 - 4 * c4, c2 + 3 * c3 + 6 * c4, -c3 - 4 * c4, c4)
    return ((first, powers, _TAYLOR),)


def _padded(n: int, tile: int) -> int:
    return -(-n // tile) * tile


def _parts(A: Tensor) -> Iterator[slice]:
    """Parts of the batch, so that the scratch of each is not too large; they begin where memory is aligned for it."""
    side = _padded(A.shape[-1], _TILE)
    count = max(4, _SCRATCH // (4 * BUFFERS.value * side * side) // 4 * 4)
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
    tile = 32 if n <= 128 else 64  # of the size alone, so that results do not depend on the batch
    side = _padded(n, tile)
    across = side // tile
    programs = _resident(A.device)
    cached = _CACHE // (4 * tiles.BUFFERS.value * side * side)
    group, groups = _shape(across, batch, programs, cached) if A.is_cuda else (1, 1)
    memory = (
        torch.empty(groups, tiles.BUFFERS.value, side, side, dtype=torch.float32, device=A.device),
        torch.empty(groups, tiles.SUMS.value, tiles.SLOTS.value, dtype=torch.float32, device=A.device),
        left,
        batch,
        groups,
        group,
    )
    options = {
        "side": side,
        "TILE": tile,
        "DEPTH": 32,
        "num_warps": 4,
        "num_stages": 3,
        "launch_cooperative_grid": True,  # programs wait for each other: all must be there
    }
    return (groups * group, 1, 1), memory, options


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
