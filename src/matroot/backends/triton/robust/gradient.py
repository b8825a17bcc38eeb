"""Gradients of the matrices that the fast path defers: one launch, a group of programs per matrix."""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import initial_inverse
from ..scaling import power_of_two
from ..tiled.tiles import FLAGS, ROBUST_COUNTER, group_barrier, is_deferred, lower_tile_count
from .gradient_bounds import doubling_count, largest_eigenvalue, newton_count, norm_exponent_of, sandwich_exponent
from .gradient_input import (
    C_SQUARES,
    SUM_ROWS,
    UNIT_G,
    V_SQUARES,
    X_TRACES,
    equation_scales,
    norm_tile,
    precondition_tile,
    result_tile,
    unit_of_X,
)
from .gradient_steps import FINISHED, SANDWICH_LEFT, SANDWICH_RIGHT, gradient_tile, next_phase, tiles_of_phase
from .roots_input import RUNNING
from .tiles import BUFFERS, any_deferred, sum_slots


# Neither the number and size of the groups, nor the size of the matrices, nor which cotangents there are is a reason to
# compile again.
@triton.jit(do_not_specialize=["batch", "groups", "programs", "n", "has_S", "has_R"])
def robust_gradient_kernel(
    S, R, GS, GR, out, scratch, sums, deferred, batch, groups, programs, n, has_S, has_R, ridge, depth,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """X with S X + X S = GS - R GR R and the ridge's share, of the cotangents that there are, for the matrices that
    are ``deferred``. Scratch and sums are as for ``robust_roots_kernel``."""
    tile_rows, lower_tiles = side // TILE, lower_tile_count(side, TILE)
    row = tile_rows * tile_rows
    group, rank = tl.program_id(0) // programs, tl.program_id(0) % programs
    plane = tl.cast(side, tl.int64) * side
    scratch += group * (2 * BUFFERS * plane)
    slots = sums + group * (SUM_ROWS * row)
    counter = deferred + group * FLAGS + ROBUST_COUNTER
    target = programs
    for matrix in range(group, tl.where(any_deferred(deferred, batch), batch, 0), groups):
        if is_deferred(deferred, matrix):
            offset = tl.cast(matrix, tl.int64) * n * n
            s, r, gs, gr = S + offset, R + offset, GS + offset, GR + offset
            matrices = 2 + tl.where(has_S != 0, 1, 0) + tl.where(has_R != 0, 1, 0)
            for t in range(rank, matrices * lower_tiles, programs):
                norm_tile(s, r, gs, gr, slots, row, t, n, has_S, tile_rows, TILE)
            target = group_barrier(counter, target, programs)
            mu, result_unit, cotangent_unit, norm_exponent, state = equation_scales(
                slots, row, has_S, has_R, lower_tiles
            )
            g = tl.where(has_R != 0, gr, gs)
            for t in range(rank, tl.where(state == RUNNING, 3 * lower_tiles, 0), programs):
                precondition_tile(s, r, g, scratch, slots, row, t, n, mu, cotangent_unit, norm_exponent, side, TILE)
            target = group_barrier(counter, target, programs)

            # All programs of the group compute these numbers, from the same sums.
            V_size = norm_exponent_of(slots + V_SQUARES * row, lower_tiles)
            phase, repetition = tl.where(state == RUNNING, SANDWICH_LEFT, FINISHED), 0
            top, growth, size, unit_C = tl.full((), 1.0, tl.float32), 0, 1, UNIT_G
            p, k0, k1, k2, error = initial_inverse(top)
            iterations, doublings = 1, 0
            while phase != FINISHED:
                for t in range(rank, tiles_of_phase(phase, repetition, doublings, tile_rows), programs):
                    gradient_tile(
                        gs, scratch, slots, row, t, n, depth, has_S, phase, repetition, iterations,
                        p, k0, k1, k2, error, mu, cotangent_unit, result_unit, norm_exponent, V_size, growth, size,
                        unit_C, side, TILE, DEPTH,
                    )  # fmt: skip
                target = group_barrier(counter, target, programs)
                if (phase == SANDWICH_LEFT) & (repetition == 0):
                    top = largest_eigenvalue(slots, row, n, lower_tiles)
                    p, k0, k1, k2, error = initial_inverse(top)
                    iterations, doublings = newton_count(error), doubling_count(p)
                    growth = sandwich_exponent(top)
                elif (phase == SANDWICH_RIGHT) & (repetition == 0):
                    size, unit_C = norm_exponent_of(slots + C_SQUARES * row, lower_tiles), power_of_two(14 - growth)
                phase, repetition = next_phase(phase, repetition, has_R, iterations, doublings)

            ridge_term = (ridge / n) * sum_slots(slots + X_TRACES * row, tl.where(ridge == 0, 0, tile_rows))
            of_planes = 1 / unit_of_X(growth + size, p)
            for t in range(rank, lower_tiles, programs):
                result_tile(
                    out + offset, scratch, t, n, state, of_planes, ridge_term, 2 * p / mu, result_unit, side, TILE
                )  # fmt: skip
