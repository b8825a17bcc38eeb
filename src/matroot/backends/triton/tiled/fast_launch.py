"""Launching the fast path: in one cooperative launch, or phase by phase.

Cooperative where the programs for all tiles are resident at once; otherwise one launch per phase. Larger batches of
matrices that the kernels on chip can take, one program each, are left to these, which defer none.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..launch import LaunchSequence, launch_cached
from ..on_chip import launch as on_chip
from . import fast_kernels as kernels
from .fast_gradient import GRADIENT_STATS, MAX_STEPS
from .fast_roots import ROOTS_STATS
from .occupancy import WARPS, max_resident_programs, resident_programs
from .split_fp16 import SUM_ROWS
from .tiles import BUFFERS, FLAGS, SLOTS

_TILE = 64
_MAX_SCRATCH = 1 << 29
"""Bytes of scratch; larger batches are processed in parts."""
_COOPERATIVE = {"num_stages": 3, "launch_cooperative_grid": True}


def roots(A: Tensor, S: Tensor, R: Tensor, table: Tensor, ridge: float, max_shift: float, key: tuple) -> Tensor | None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n) that suit the fast path.

    Returns flags of the matrices that are deferred to the robust path, None if none can be.
    """
    n, strides = A.shape[-1], A.stride()
    tile = _cooperative_tile(n)
    lower_tiles, all_tiles = _tile_counts(n, tile)
    warps, most = WARPS, lower_tiles + all_tiles
    # With fewer programs than tiles in the longest phase, twice the programs of half the warps are faster.
    if A.is_cuda and tile < _TILE and max_resident_programs(A.device) // len(A) < 2 * lower_tiles:
        warps, most = WARPS // 2, 2 * lower_tiles
    options = _options(n, tile) | _COOPERATIVE | {"num_warps": warps}

    def arguments(deferred: Tensor, programs: int) -> tuple:
        return A, S, R, *_memory(A, ROOTS_STATS.value), deferred, table, n, *strides, ridge, programs

    kernel = kernels.fast_roots_cooperative_kernel
    programs = programs_per_matrix(kernel, A, lower_tiles, most, arguments, options, key)
    if not programs and on_chip.can_take(n, A.device):
        on_chip.roots(A, S, R, ridge, max_shift, key)
        return None
    deferred = _flags(A, programs)
    if programs:
        launch_cached(kernel, (len(A) * programs, 1, 1), arguments(deferred, programs), options, (warps, *key))
    else:
        _roots_by_phase(A, S, R, deferred, table, ridge, key)
    return deferred


def solve(
    inputs: tuple[Tensor, ...], out: Tensor, ridge: float, has_cotangent: dict[str, bool], key: tuple
) -> Tensor | None:
    """X with S X + X S = GS - R GR R into ``out``, given S, R, GS and GR, for matrices that suit the fast path.

    Returns flags of the matrices that are deferred to the robust path, None if none can be.
    """
    n = out.shape[-1]
    tile = _cooperative_tile(n)
    lower_tiles, all_tiles = _tile_counts(n, tile)
    options = has_cotangent | _options(n, tile) | _COOPERATIVE | {"num_warps": WARPS}

    def arguments(deferred: Tensor, programs: int) -> tuple:
        return *inputs, out, *_memory(out, GRADIENT_STATS.value), deferred, n, ridge, programs

    kernel = kernels.fast_gradient_cooperative_kernel
    programs = programs_per_matrix(kernel, out, lower_tiles, lower_tiles + all_tiles, arguments, options, key)
    if not programs and on_chip.can_take(n, out.device):
        S, R, GS, GR = inputs
        on_chip.solve(S, R, GS, GR, out, ridge, has_cotangent["HAS_S"], has_cotangent["HAS_R"], key)
        return None
    deferred = _flags(out, programs)
    if programs:
        launch_cached(kernel, (len(out) * programs, 1, 1), arguments(deferred, programs), options, key)
    else:
        _solve_by_phase(inputs, out, deferred, ridge, has_cotangent, key)
    return deferred


def batches_of_all_kernels(n: int, device: torch.device) -> tuple[int, ...]:
    """Batches that between them launch every kernel which batches of any size do.

    One matrix, the largest batch that may be cooperative, with few programs a matrix, and one that is not cooperative.
    """
    largest = max_resident_programs(device) // _tile_counts(n, _cooperative_tile(n))[0]
    return tuple(sorted({1, largest, largest + 1} - {0}))


def programs_per_matrix(
    kernel: Any,
    A: Tensor,
    least: int,
    most: int,
    arguments: Callable[[Tensor, int], tuple],
    options: dict[str, Any],
    key: tuple,
) -> int:
    """Programs per matrix of a cooperative launch; zero if fewer than ``least`` would be resident."""
    if max_resident_programs(A.device) // len(A) < least:
        return 0  # without compiling
    resident = resident_programs(kernel, lambda: arguments(_flags(A, 1), 1), options, A.device, key)
    programs = min(most, resident // len(A))
    return programs if programs >= least else 0


def _roots_by_phase(A: Tensor, S: Tensor, R: Tensor, deferred: Tensor, table: Tensor, ridge: float, key: tuple) -> None:
    n, strides, options = A.shape[-1], A.stride(), _options(A.shape[-1], _TILE)
    for part in _parts(A):
        scratch, sums, matrix_stats = _memory(A[part], ROOTS_STATS.value)
        lower_tiles = len(scratch) * _tile_counts(n, _TILE)[0]
        sequence = LaunchSequence(options, A.device, key)
        arguments = (A[part], scratch, matrix_stats, deferred[part], n, *strides, ridge)
        sequence.launch(kernels.fast_scale_kernel, lower_tiles, arguments)
        arguments = (S[part], R[part], scratch, sums, matrix_stats, deferred[part], table, n)
        for phase, repetition in kernels.roots_launches():
            programs = kernels.roots_tiles.fn(phase, lower_tiles)
            sequence.launch(kernels.fast_roots_phase_kernel, programs, (*arguments, repetition), PHASE=phase)


def _solve_by_phase(
    inputs: tuple[Tensor, ...],
    out: Tensor,
    deferred: Tensor,
    ridge: float,
    has_cotangent: dict[str, bool],
    key: tuple,
) -> None:
    n, options = out.shape[-1], _options(out.shape[-1], _TILE)
    for part in _parts(out):
        S, R, GS, GR = (T[part] for T in inputs)
        scratch, sums, matrix_stats = _memory(out[part], GRADIENT_STATS.value)
        lower_tiles, all_tiles = (len(scratch) * count for count in _tile_counts(n, _TILE))
        sequence = LaunchSequence(options, out.device, key)
        sequence.launch(kernels.fast_norms_kernel, lower_tiles, (R, GS, GR, sums, n), **has_cotangent)
        arguments = (S, R, GS, GR, scratch, sums, matrix_stats, deferred[part], n)
        sequence.launch(kernels.fast_precondition_kernel, lower_tiles, arguments, **has_cotangent)
        arguments = (GS, out[part], scratch, sums, matrix_stats, deferred[part], n, ridge)
        for phase in range(0 if has_cotangent["HAS_R"] else 2, kernels.GRADIENT_PHASES.value):
            programs = kernels.gradient_tiles.fn(phase, lower_tiles, all_tiles)
            for repetition in range(kernels.repetitions.fn(phase, MAX_STEPS.value, MAX_STEPS.value)):
                sequence.launch(
                    kernels.fast_gradient_phase_kernel,
                    programs,
                    (*arguments, repetition),
                    PHASE=phase,
                    HAS_S=phase == 1 and has_cotangent["HAS_S"],  # no other phase depends on it
                )


def _flags(A: Tensor, programs: int) -> Tensor:
    """Flags and barrier counters of all matrices; those of a cooperative launch start at zero."""
    allocate = torch.zeros if programs else torch.empty
    return allocate(len(A), FLAGS.value, dtype=torch.int32, device=A.device)


def _cooperative_tile(n: int) -> int:
    return 32 if n <= 128 else _TILE


def _side(n: int) -> int:
    """The size padded to whole tiles."""
    return -(-n // _TILE) * _TILE


def _tile_counts(n: int, tile: int) -> tuple[int, int]:
    """Tiles of a matrix on and below its diagonal, and all."""
    tile_rows = _side(n) // tile
    return tile_rows * (tile_rows + 1) // 2, tile_rows * tile_rows


def _parts(A: Tensor) -> Iterator[slice]:
    """Parts of the batch with a limited scratch; multiples of 8, so that all of them are equally aligned."""
    count = max(8, _MAX_SCRATCH // (4 * BUFFERS.value * _side(A.shape[-1]) ** 2) // 8 * 8)
    return (slice(start, start + count) for start in range(0, len(A), count))


def _options(n: int, tile: int) -> dict[str, Any]:
    return {"side": _side(n), "TILE": tile, "DEPTH": _TILE}


def _memory(A: Tensor, stats: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scratch, sums, and statistics of each matrix, uninitialised."""
    batch, side = len(A), _side(A.shape[-1])
    scratch = torch.empty(batch, BUFFERS.value, 2, side, side, dtype=torch.float16, device=A.device)
    sums = torch.empty(batch, SUM_ROWS.value, SLOTS.value, dtype=torch.float32, device=A.device)
    return scratch, sums, torch.empty(batch, stats, dtype=torch.float32, device=A.device)
