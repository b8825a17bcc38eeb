"""Kernels of the fast path: one launch per phase, or one cooperative launch for all phases.

In a launch of its own a phase has one program per tile, for any number of matrices. In a cooperative launch the
programs of a matrix share its tiles, with a barrier after every phase: faster where all programs are resident at once.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

from collections.abc import Iterator

import triton
import triton.language as tl

from .fast_gradient import (
    GRADIENT_STATS,
    chebyshev_step,
    left_product,
    precondition,
    sandwich_right,
    start_iteration,
    start_refinement,
    step_counts,
    store_moments,
    store_norms,
)
from .fast_roots import (
    FIRST_STEP,
    LAST_STEP,
    RESIDUAL,
    ROOTS_PHASES,
    SQUARE_INPUT,
    UPDATE,
    last_powers_tile,
    last_square_tile,
    middle_steps,
    needs_higher_powers,
    product_tile,
    scale_input,
)
from .tiles import FAST_COUNTER, FLAGS, group_barrier, is_deferred, load_bypass_l1, lower_tile_count

LAST_SQUARE = tl.constexpr(7)
LAST_POWERS = tl.constexpr(8)
"""Phases of the last step with products in float16."""
MAX_MIDDLE_STEPS = tl.constexpr(2)
GRADIENT_PHASES = tl.constexpr(8)
"""After ``precondition``: left_product and sandwich_right where an inverse root has a cotangent, left_product and
store_moments, start_iteration, chebyshev_step, start_refinement, chebyshev_step, and the last chebyshev_step."""


@triton.jit
def matrix_and_tile(programs_per_matrix, backwards=False) -> tuple:
    """The matrix of this program and the tile, or its rank among the programs of the matrix.

    Alternate launches go forwards and backwards through the batch: what one of them wrote last is still in the cache.
    """
    matrix = tl.program_id(0) // programs_per_matrix
    last = tl.num_programs(0) // programs_per_matrix - 1
    return tl.where(backwards, last - matrix, matrix).to(tl.int64), tl.program_id(0) % programs_per_matrix


@triton.jit
def _should_run(MAY_DEFER: tl.constexpr, deferred, matrix):
    """Whether a phase with a launch of its own works on a matrix: unless that is deferred.

    A phase that may defer the matrix does not read the flag: some threads of a program could read it before another
    program writes it, and others after. What it computes for a deferred matrix is never used.
    """
    return True if MAY_DEFER else not is_deferred(deferred, matrix)


@triton.jit
def roots_tiles(phase, lower_tiles):
    """Tiles that a phase computes, of Y and Z or of one matrix, given the number of those on and below the diagonal."""
    tiles = lower_tiles
    if phase % 4 == 1:
        tiles = 2 * lower_tiles
    return tiles


@triton.jit
def _roots_repetitions(PHASE: tl.constexpr, last_step):
    """How often a phase is repeated, given the number of middle steps."""
    return last_step if PHASE > 1 and PHASE < LAST_STEP else 1


def roots_launches() -> Iterator[tuple[int, int]]:
    """Phases and their repetitions in order."""
    first, last, phases = RESIDUAL.value, LAST_STEP.value, ROOTS_PHASES.value
    yield from ((phase, 0) for phase in range(first))
    yield from ((phase, step) for step in range(MAX_MIDDLE_STEPS.value) for phase in range(first, last))
    yield from ((phase, 0) for phase in range(last, phases))


@triton.jit
def _roots_phase(
    phase, S, R, scratch, sums, matrix_stats, deferred, table, n, last_step, step,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    if phase == LAST_SQUARE:
        last_square_tile(scratch, sums, table, n, last_step, matrix, t, side, TILE, DEPTH)
    elif phase == LAST_POWERS:
        last_powers_tile(scratch, table, last_step, matrix, t, side, TILE, DEPTH)
    else:
        product_tile(
            S, R, scratch, sums, matrix_stats, deferred, table, n, last_step, step, phase,
            matrix, t, side, TILE, DEPTH,
        )  # fmt: skip


@triton.jit
def _changes_result(phase, sums, n, matrix, side, TILE: tl.constexpr):
    """False for the last powers where they are negligible."""
    changes = True
    if phase == LAST_POWERS:
        changes = needs_higher_powers(sums, n, matrix, side, TILE)
    return changes


@triton.jit
def fast_scale_kernel(
    A, scratch, matrix_stats, deferred, n, stride_batch, stride_row, stride_column, ridge, side, TILE: tl.constexpr
):  # fmt: skip
    matrix, t = matrix_and_tile(lower_tile_count(side, TILE))
    scale_input(
        A, scratch, matrix_stats, deferred, n, stride_batch, stride_row, stride_column, ridge, matrix, t, side, TILE
    )  # fmt: skip


@triton.jit(do_not_specialize=["repetition"])
def fast_roots_phase_kernel(
    S, R, scratch, sums, matrix_stats, deferred, table, n, repetition,
    PHASE: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    matrix, t = matrix_and_tile(roots_tiles(PHASE, lower_tile_count(side, TILE)), PHASE % 2 == 0)
    MAY_DEFER: tl.constexpr = PHASE == FIRST_STEP or PHASE == ROOTS_PHASES - 1
    if _should_run(MAY_DEFER, deferred, matrix) and _changes_result(PHASE, sums, n, matrix, side, TILE):
        last_step = 1
        if PHASE >= RESIDUAL:
            last_step = middle_steps(matrix_stats, matrix)
        if repetition < _roots_repetitions(PHASE, last_step):
            step = last_step if PHASE >= LAST_STEP else repetition
            _roots_phase(
                PHASE, S, R, scratch, sums, matrix_stats, deferred, table, n, last_step, step,
                matrix, t, side, TILE, DEPTH,
            )  # fmt: skip


@triton.jit(do_not_specialize=["programs_per_matrix"])
def fast_roots_cooperative_kernel(
    A, S, R, scratch, sums, matrix_stats, deferred, table, n, stride_batch, stride_row, stride_column, ridge,
    programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    lower_tiles = lower_tile_count(side, TILE)
    matrix, rank = matrix_and_tile(programs_per_matrix)
    counter = deferred + matrix * FLAGS + FAST_COUNTER
    for t in range(rank, lower_tiles, programs_per_matrix):
        scale_input(
            A, scratch, matrix_stats, deferred, n, stride_batch, stride_row, stride_column, ridge, matrix, t, side, TILE
        )  # fmt: skip
    target = group_barrier(counter, programs_per_matrix, programs_per_matrix)
    active = not is_deferred(deferred, matrix)
    phase, step, last_step = SQUARE_INPUT + 0 * rank, 0 * rank, 0 * rank
    while active:
        if _changes_result(phase, sums, n, matrix, side, TILE):
            for t in range(rank, roots_tiles(phase, lower_tiles), programs_per_matrix):
                _roots_phase(
                    phase, S, R, scratch, sums, matrix_stats, deferred, table, n, last_step, step,
                    matrix, t, side, TILE, DEPTH,
                )  # fmt: skip
            if phase < ROOTS_PHASES - 1:
                target = group_barrier(counter, target, programs_per_matrix)
        active = phase < ROOTS_PHASES - 1
        if phase == FIRST_STEP:
            active = not is_deferred(deferred, matrix)
            last_step = middle_steps(matrix_stats, matrix)
        ends_middle_step = phase == UPDATE
        step += tl.where(ends_middle_step, 1, 0)
        phase = tl.where(ends_middle_step & (step < last_step), RESIDUAL, phase + 1)


@triton.jit
def gradient_tiles(phase, lower_tiles, all_tiles):
    """Tiles that a phase computes, given the number of those on and below the diagonal, and of all."""
    tiles = lower_tiles
    if phase == 0:
        tiles = all_tiles
    elif phase == 2:
        tiles = all_tiles + lower_tiles
    return tiles


@triton.jit
def repetitions(phase, first_steps, refinement_steps):
    """How often a phase is repeated, given the steps of the iteration and of its refinement."""
    count = 1
    if phase == 4:
        count = first_steps
    elif phase == 6:
        count = refinement_steps - 1
    return count


@triton.jit
def _gradient_phase(
    phase, GS, out, scratch, sums, matrix_stats, deferred, n, ridge,
    spectral_bound, first_steps, refinement_steps, repetition, HAS_S: tl.constexpr, HAS_R: tl.constexpr,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    all_tiles = (side // TILE) * (side // TILE)
    if phase == 2 and t >= all_tiles:
        store_moments(scratch, sums, n, matrix, t - all_tiles, side, TILE, DEPTH)
    elif phase == 0 or phase == 2:
        left_product(scratch, sums, n, matrix, t, side, TILE, DEPTH)
    elif HAS_R and phase == 1:
        sandwich_right(scratch, matrix_stats, GS, n, HAS_S, matrix, t, side, TILE, DEPTH)
    elif phase == 3:
        start_iteration(scratch, sums, matrix_stats, deferred, n, matrix, t, side, TILE, DEPTH)
    elif phase == 5:
        start_refinement(scratch, spectral_bound, first_steps, matrix, t, side, TILE, DEPTH)
    else:
        step = refinement_steps if phase == 7 else repetition + 1
        chebyshev_step(
            scratch, sums, matrix_stats, out, n, ridge, spectral_bound, first_steps, step, phase > 5, phase == 7,
            matrix, t, side, TILE, DEPTH,
        )  # fmt: skip


@triton.jit
def fast_norms_kernel(
    R, GS, GR, sums, n, HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr
):  # fmt: skip
    matrix, t = matrix_and_tile(lower_tile_count(side, TILE))
    store_norms(R, GS, GR, sums, n, HAS_S, HAS_R, matrix, t, side, TILE)


@triton.jit
def fast_precondition_kernel(
    S, R, GS, GR, scratch, sums, matrix_stats, deferred, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr,
):  # fmt: skip
    matrix, t = matrix_and_tile(lower_tile_count(side, TILE), True)
    precondition(S, R, GS, GR, scratch, sums, matrix_stats, deferred, n, HAS_S, HAS_R, matrix, t, side, TILE)


@triton.jit(do_not_specialize=["repetition"])
def fast_gradient_phase_kernel(
    GS, out, scratch, sums, matrix_stats, deferred, n, ridge, repetition,
    PHASE: tl.constexpr, HAS_S: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    tile_rows = side // TILE
    tiles = gradient_tiles(PHASE, lower_tile_count(side, TILE), tile_rows * tile_rows)
    matrix, t = matrix_and_tile(tiles, (PHASE + repetition) % 2 == 1)
    if _should_run(PHASE == 3, deferred, matrix):
        spectral_bound = 0.0
        first_steps, refinement_steps = 1, 1
        if PHASE > 3:
            spectral_bound = load_bypass_l1(matrix_stats + GRADIENT_STATS * matrix + 3)
            first_steps, refinement_steps = step_counts(spectral_bound)
        if repetition < repetitions(PHASE, first_steps, refinement_steps):
            _gradient_phase(
                PHASE, GS, out, scratch, sums, matrix_stats, deferred, n, ridge,
                spectral_bound, first_steps, refinement_steps, repetition, HAS_S, True,
                matrix, t, side, TILE, DEPTH,
            )  # fmt: skip


@triton.jit(do_not_specialize=["programs_per_matrix"])
def fast_gradient_cooperative_kernel(
    S, R, GS, GR, out, scratch, sums, matrix_stats, deferred, n, ridge, programs_per_matrix,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    lower_tiles = lower_tile_count(side, TILE)
    all_tiles = (side // TILE) * (side // TILE)
    matrix, rank = matrix_and_tile(programs_per_matrix)
    counter = deferred + matrix * FLAGS + FAST_COUNTER
    for t in range(rank, lower_tiles, programs_per_matrix):
        store_norms(R, GS, GR, sums, n, HAS_S, HAS_R, matrix, t, side, TILE)
    target = group_barrier(counter, programs_per_matrix, programs_per_matrix)
    for t in range(rank, lower_tiles, programs_per_matrix):
        precondition(S, R, GS, GR, scratch, sums, matrix_stats, deferred, n, HAS_S, HAS_R, matrix, t, side, TILE)
    target = group_barrier(counter, target, programs_per_matrix)
    active = not is_deferred(deferred, matrix)
    spectral_bound = 0.0 * ridge
    first_steps, refinement_steps = 0 * rank, 0 * rank
    for phase in range(0 if HAS_R else 2, GRADIENT_PHASES):
        if active:
            for repetition in range(repetitions(phase, first_steps, refinement_steps)):
                for t in range(rank, gradient_tiles(phase, lower_tiles, all_tiles), programs_per_matrix):
                    _gradient_phase(
                        phase, GS, out, scratch, sums, matrix_stats, deferred, n, ridge,
                        spectral_bound, first_steps, refinement_steps, repetition, HAS_S, HAS_R,
                        matrix, t, side, TILE, DEPTH,
                    )  # fmt: skip
                if phase < GRADIENT_PHASES - 1:
                    target = group_barrier(counter, target, programs_per_matrix)
            if phase == 3:
                active = not is_deferred(deferred, matrix)
                spectral_bound = load_bypass_l1(matrix_stats + GRADIENT_STATS * matrix + 3)
                first_steps, refinement_steps = step_counts(spectral_bound)
