"""Roots of the matrices that the fast path defers: one launch, a group of programs per matrix.

Each matrix takes the steps that the sums over its tiles suggest:

- fast, at first, where it seems well-conditioned;
- Taylor's, if E is small, and then as the last one;
- a lift otherwise, which enlarges small eigenvalues of M = Z Y most;
- holds, four times, once eigenvalues that are still small are zero up to rounding: they stay what they are. The first
  two settle those that rounding made negative;
- none, if an eigenvalue of M is clearly negative. Then Y and Z of the step before are those of A + shift, with a shift
  that makes their eigenvalues positive. If it is larger than rounding explains, the matrix fails.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..tiled.tiles import FLAGS, ROBUST_COUNTER, group_barrier, is_deferred, lower_tile_count
from .roots_input import DONE, FAILED, RUNNING, SUM_ROWS, finish_tile, input_scale, measure_tile, scale_tile
from .roots_progress import HOLD_STEP, MAX_STEPS, growth, next_step, power_above, shift_for
from .roots_steps import (
    CORRECTION,
    FIRST_STEP,
    RESIDUAL,
    SQUARE_INPUT,
    UPDATE,
    first_scales,
    roots_tile,
    tiles_of_phase,
)
from .tiles import BUFFERS, any_deferred


# Neither the number and size of the groups nor the size of the matrices is a reason to compile again. Where matrices
# may end anywhere in a tile, the divisibility of their strides is of no use either.
@triton.jit(do_not_specialize=["batch", "groups", "programs", "n", "stride_batch", "stride_row"])
def robust_roots_kernel(
    A, S, R, table, scratch, sums, deferred, batch, groups, programs,
    n, stride_batch, stride_row, stride_column, ridge, max_shift, depth,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Roots and inverse roots of the symmetric parts of the matrices that are ``deferred``.

    The scratch holds BUFFERS pairs of float16 matrices for each of the ``groups`` of so many ``programs``, the sums
    SUM_ROWS rows of slots.
    """
    tile_rows, lower_tiles = side // TILE, lower_tile_count(side, TILE)
    row = tile_rows * tile_rows
    group, rank = tl.program_id(0) // programs, tl.program_id(0) % programs
    plane = tl.cast(side, tl.int64) * side
    scratch += group * (2 * BUFFERS * plane)
    slots = sums + group * (SUM_ROWS * row)
    counter = deferred + group * FLAGS + ROBUST_COUNTER
    target, one = programs, tl.full((), 1.0, tl.float32)
    for matrix in range(group, tl.where(any_deferred(deferred, batch), batch, 0), groups):
        if is_deferred(deferred, matrix):
            number = tl.cast(matrix, tl.int64)
            source, result = A + number * stride_batch, number * n * n
            for t in range(rank, lower_tiles, programs):
                measure_tile(source, slots, row, t, n, stride_row, stride_column, tile_rows, TILE)
            target = group_barrier(counter, target, programs)
            exponent, added, mean, centre, state = input_scale(slots, row, n, ridge, lower_tiles)
            for t in range(rank, lower_tiles, programs):
                scale_tile(source, scratch, t, n, stride_row, stride_column, exponent, added, side, TILE)
            target = group_barrier(counter, target, programs)

            # All programs of the group compute these numbers, from the same sums.
            zero = 0 * rank
            phase, step, pair, kind, holds = zero + SQUARE_INPUT, zero, zero, zero, zero
            theta, gain, gain_before, factor = one, one, one, one
            shift, fourth, fourth_before, mean_E = 0 * one, 0 * one, -one, 0 * one
            easy, mirrors, is_last, blown = rank < 0, rank < 0, rank < 0, rank < 0
            while state == RUNNING:
                if phase == FIRST_STEP:
                    theta, easy = first_scales(slots, row, n, mean, centre, lower_tiles)
                    kind = tl.where(easy, 0, 1)
                    gain = tl.load(table + 3 * kind)
                elif phase == CORRECTION:
                    kind, is_last, blown, fourth, mean_E = next_step(
                        slots, row, n, step, tile_rows, mirrors, easy, gain, shift, holds
                    )
                    if blown:
                        # Once, and if there was a step before.
                        state = tl.where((fourth_before >= 0) & (shift == 0), RUNNING, FAILED)
                        shift, factor = shift_for(fourth_before, gain_before, max_shift)
                        gain, phase, is_last = factor * gain_before, zero + UPDATE, rank < 0
                c = table + 3 * kind
                # Only after these steps a matrix that seemed well-conditioned is known not to be.
                mirrors = easy & (step < 2) & (phase > FIRST_STEP)
                tiles = tl.where(state == RUNNING, tiles_of_phase(phase, mirrors, tile_rows), 0)
                for t in range(rank, tiles, programs):
                    roots_tile(
                        S + result, R + result, scratch, slots, row, t, n, depth, phase, mirrors, 2 * pair, c, centre,
                        theta, exponent, gain, mean_E, is_last, blown, shift, factor, power_above(gain_before),
                        side, TILE, DEPTH,
                    )  # fmt: skip
                target = group_barrier(counter, target, programs)
                if phase == UPDATE:
                    if blown:
                        fourth_before, holds = -one, zero
                    else:
                        state = tl.where(is_last, DONE, state)
                        holds += tl.where(kind >= HOLD_STEP, 1, 0)
                        fourth_before, gain_before = fourth, gain
                        gain, pair = gain * growth(c), 1 - pair
                    step += 1
                    state = tl.where((state == RUNNING) & (step == MAX_STEPS), FAILED, state)
                    blown = rank < 0
                phase = tl.where(phase == UPDATE, RESIDUAL, phase + 1)

            if (state != DONE) | (shift > 0):
                for t in range(rank, tile_rows * tile_rows, programs):
                    finish_tile(S + result, R + result, t, n, state, shift, exponent, theta, tile_rows, TILE)
