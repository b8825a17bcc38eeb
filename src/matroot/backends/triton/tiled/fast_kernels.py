"""Kernels for large matrices that are easy: a launch for each phase, or one for all of them.

In a launch of its own a phase has one program per tile, for any number of matrices. In one launch the programs of a
matrix, all there at once, deal its tiles among them, and meet after every phase: that is faster where it fits.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .fast_gradient import again, begin, half_turn, iterate, measure, prepare, steps_of, survey, turn
from .fast_roots import correct, gap, lacking, rest, scale, square, start, terms
from .split_fp16 import fresh, half_of, here, whereabouts
from .tiles import LINE, meet

ROOTS_PHASES = tl.constexpr(10)
"""After ``scale``: square, start, then twice gap, terms, rest and correct."""
SOLVE_PHASES = tl.constexpr(8)
"""After ``prepare``: half_turn and turn where an inverse root has a cotangent, survey, begin, iterate, again, iterate,
and iterate for the last time."""


@triton.jit
def _together(left, matrix):
    """The counter by which the programs of a matrix meet: apart from that of the programs for what is left."""
    return left + matrix * LINE + 2


@triton.jit
def _concerns(LEAVES: tl.constexpr, left, matrix):
    """Whether a phase with a launch of its own has to do with a matrix: whether that is not left.

    One that may leave the matrix itself does not ask: some threads of a program could ask before another program
    answers, and others after it. What it makes of a matrix that is left is never read.
    """
    return True if LEAVES else here(left, matrix)


@triton.jit
def roots_tiles(PHASE: tl.constexpr, half):
    """Tiles to be made in a phase, given those on and below the diagonal."""
    return 2 * half if PHASE % 4 == 1 and PHASE > 1 else half


@triton.jit
def _roots_phase(
    PHASE: tl.constexpr, S, R, scratch, sums, facts, left, table, n,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    LAST: tl.constexpr = PHASE > 5
    if PHASE == 0:
        square(scratch, sums, matrix, t, side, TILE, DEPTH)
    elif PHASE == 1:
        start(scratch, sums, facts, left, table, n, matrix, t, side, TILE, DEPTH)
    elif PHASE % 4 == 2:
        gap(scratch, n, LAST, matrix, t, side, TILE, DEPTH)
    elif PHASE % 4 == 3:
        terms(scratch, sums, table, n, LAST, matrix, t, side, TILE, DEPTH)
    elif PHASE % 4 == 0:
        rest(scratch, table, n, LAST, matrix, t, side, TILE, DEPTH)
    else:
        correct(scratch, sums, facts, left, S, R, n, LAST, matrix, t, side, TILE, DEPTH)


@triton.jit
def _counts(PHASE: tl.constexpr, sums, n, matrix, side, TILE: tl.constexpr):
    """Whether a phase makes a difference: the rest of the last step may not."""
    return lacking(sums, n, matrix, side, TILE) if PHASE == 8 else True


@triton.jit
def scale_kernel(
    A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge, side, TILE: tl.constexpr
):  # fmt: skip
    half = half_of(side, TILE)
    matrix, t = whereabouts(half)
    scale(A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge, matrix, t, side, TILE)


@triton.jit
def roots_phase_kernel(
    S, R, scratch, sums, facts, left, table, n,
    PHASE: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    half = half_of(side, TILE)
    matrix, t = whereabouts(roots_tiles(PHASE, half), PHASE % 2 == 0)
    LEAVES: tl.constexpr = PHASE == 1 or PHASE == ROOTS_PHASES - 1
    if _concerns(LEAVES, left, matrix) and _counts(PHASE, sums, n, matrix, side, TILE):
        _roots_phase(PHASE, S, R, scratch, sums, facts, left, table, n, matrix, t, side, TILE, DEPTH)


@triton.jit(do_not_specialize=["members"])
def all_roots_phases_kernel(
    A, S, R, scratch, sums, facts, left, table, n, stride_batch, stride_row, stride_column, ridge,
    members, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    half = half_of(side, TILE)
    matrix, rank = whereabouts(members)
    counter = _together(left, matrix)
    for t in range(rank, half, members):
        scale(A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge, matrix, t, side, TILE)
    due = meet(counter, members, members)
    easy = here(left, matrix)
    for PHASE in tl.static_range(ROOTS_PHASES):
        if easy and _counts(PHASE, sums, n, matrix, side, TILE):
            for t in range(rank, roots_tiles(PHASE, half), members):
                _roots_phase(PHASE, S, R, scratch, sums, facts, left, table, n, matrix, t, side, TILE, DEPTH)
            if PHASE < ROOTS_PHASES - 1:
                due = meet(counter, due, members)
            if PHASE == 1:
                easy = here(left, matrix)


@triton.jit
def solve_tiles(PHASE: tl.constexpr, half, full):
    """Tiles to be made in a phase, given those on and below the diagonal, and all of them."""
    return full if PHASE == 0 else full + half if PHASE == 2 else half


@triton.jit
def repeats(PHASE: tl.constexpr, first, second):
    """How often a phase takes place, given how many steps are needed the first time and the second."""
    return first if PHASE == 4 else second - 1 if PHASE == 6 else 1


@triton.jit
def _solve_phase(
    PHASE: tl.constexpr, GS, out, scratch, sums, facts, left, n, ridge, top, first, second, before, HAS_S: tl.constexpr,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    if PHASE == 0:
        half_turn(scratch, matrix, t, side, TILE, DEPTH)
    elif PHASE == 1:
        turn(scratch, facts, GS, n, HAS_S, matrix, t, side, TILE, DEPTH)
    elif PHASE == 2:
        survey(scratch, sums, n, matrix, t, side, TILE, DEPTH)
    elif PHASE == 3:
        begin(scratch, sums, facts, left, n, matrix, t, side, TILE, DEPTH)
    elif PHASE == 5:
        again(scratch, top, first, matrix, t, side, TILE, DEPTH)
    else:
        step = second if PHASE == 7 else before + 1
        iterate(
            scratch, sums, facts, out, n, ridge, top, first, step, PHASE > 5, PHASE == 7,
            matrix, t, side, TILE, DEPTH,
        )  # fmt: skip


@triton.jit
def measure_kernel(
    R, GS, GR, sums, n, HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr
):  # fmt: skip
    half = half_of(side, TILE)
    matrix, t = whereabouts(half)
    measure(R, GS, GR, sums, n, HAS_S, HAS_R, matrix, t, side, TILE)


@triton.jit
def prepare_kernel(
    S, R, GS, GR, scratch, sums, facts, left, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr,
):  # fmt: skip
    half = half_of(side, TILE)
    matrix, t = whereabouts(half, True)
    prepare(S, R, GS, GR, scratch, sums, facts, left, n, HAS_S, HAS_R, matrix, t, side, TILE)


@triton.jit(do_not_specialize=["before"])
def solve_phase_kernel(
    GS, out, scratch, sums, facts, left, n, ridge, before,
    PHASE: tl.constexpr, HAS_S: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    across = side // TILE
    matrix, t = whereabouts(solve_tiles(PHASE, half_of(side, TILE), across * across), (PHASE + before) % 2 == 1)
    if _concerns(PHASE == 3, left, matrix):
        top = 0.0
        first, second = 1, 1
        if PHASE > 3:
            top = fresh(facts + 4 * matrix + 3)
            first, second = steps_of(top)
        if before < repeats(PHASE, first, second):
            _solve_phase(
                PHASE, GS, out, scratch, sums, facts, left, n, ridge, top, first, second, before, HAS_S,
                matrix, t, side, TILE, DEPTH,
            )  # fmt: skip


@triton.jit(do_not_specialize=["members"])
def all_solve_phases_kernel(
    S, R, GS, GR, out, scratch, sums, facts, left, n, ridge, members,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    half = half_of(side, TILE)
    full = (side // TILE) * (side // TILE)
    matrix, rank = whereabouts(members)
    counter = _together(left, matrix)
    for t in range(rank, half, members):
        measure(R, GS, GR, sums, n, HAS_S, HAS_R, matrix, t, side, TILE)
    due = meet(counter, members, members)
    for t in range(rank, half, members):
        prepare(S, R, GS, GR, scratch, sums, facts, left, n, HAS_S, HAS_R, matrix, t, side, TILE)
    due = meet(counter, due, members)
    easy = here(left, matrix)
    top = 0.0 * ridge
    first, second = 0 * rank, 0 * rank
    for PHASE in tl.static_range(0 if HAS_R else 2, SOLVE_PHASES):
        if easy:
            for before in range(repeats(PHASE, first, second)):
                for t in range(rank, solve_tiles(PHASE, half, full), members):
                    _solve_phase(
                        PHASE, GS, out, scratch, sums, facts, left, n, ridge, top, first, second, before, HAS_S,
                        matrix, t, side, TILE, DEPTH,
                    )  # fmt: skip
                if PHASE < SOLVE_PHASES - 1:
                    due = meet(counter, due, members)
            if PHASE == 3:
                easy = here(left, matrix)
                top = fresh(facts + 4 * matrix + 3)
                first, second = steps_of(top)
