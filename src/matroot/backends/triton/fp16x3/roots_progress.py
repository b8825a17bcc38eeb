"""What each matrix does next in its iteration, and how far it is.

The progress of a matrix: its status, which of two pairs of buffers holds Y and Z, the value of Z at an eigenvalue of
zero, the shift relative to theta, holds so far, and for the step before the sum of fourth powers of the eigenvalues of
E, negative if there was none, and the value of Z at zero. Z is stored relative to a power of two above that value.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import TAYLOR_THRESHOLD
from ..scaling import floor_log2, power_of_two
from .roots_input import DONE, FAILED, RUNNING, SEEMS_EASY, SHIFT, STATUS
from .schedule import RATIO
from .tiles import sum_slots

MAX_STEPS = tl.constexpr(9)
PAIR = tl.constexpr(1)  # of the progress
ZERO_GAIN = tl.constexpr(2)
HOLDS = tl.constexpr(4)
FOURTH_BEFORE = tl.constexpr(5)
ZERO_GAIN_BEFORE = tl.constexpr(6)

FAST_STEP = tl.constexpr(2)  # rows of the table
TAYLOR_STEP = tl.constexpr(3)
LIFT_STEP = tl.constexpr(4)
HOLD_STEP = tl.constexpr(5)
FOURTH_POWER = tl.constexpr(RATIO)
SINGULAR_GAIN = tl.constexpr(1e6)  # squared gain at which eigenvalues are zero if they are still small
MAX_HOLDS = tl.constexpr(3)


@triton.jit
def power_above(x):
    return power_of_two(floor_log2(x) + 1)


@triton.jit
def store_progress(progress, status, pair, gain, shift, holds, fourth_before, gain_before):
    tl.store(progress + STATUS, status)
    tl.store(progress + PAIR, pair)
    tl.store(progress + ZERO_GAIN, gain)
    tl.store(progress + SHIFT, shift)
    tl.store(progress + HOLDS, holds)
    tl.store(progress + FOURTH_BEFORE, fourth_before)
    tl.store(progress + ZERO_GAIN_BEFORE, gain_before)


@triton.jit
def next_step(progress, slots, stats, n, step, row, tile_rows) -> tuple:
    """The row of the table, whether this step is the last, whether the iteration blew up, and sums over E.

    These are the sum of the fourth powers of its eigenvalues, and the mean of its eigenvalues.
    """
    tiles = tile_rows * tile_rows
    squares, fourths = sum_slots(slots, tiles), sum_slots(slots + 2 * row, tiles)
    mean = sum_slots(slots + row, tile_rows) / n
    gain, holds = tl.load(progress + ZERO_GAIN), tl.load(progress + HOLDS)
    last = step == MAX_STEPS - 1
    blown = not (fourths < 2 * n + 100)
    converged = fourths < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD
    # Eigenvalues of E near one, those of M near zero, have fourth powers like their squares.
    singular = (gain * gain > SINGULAR_GAIN) & (fourths > 0.8) & (fourths > 0.3 * squares)
    holding = ((holds > 0) | singular) & (not converged)
    small = converged | (fourths < 0.13) | (fourths < 0.25 * squares)
    fast = (step == 0) & (tl.load(stats + SEEMS_EASY) > 0) & (not converged)
    kind = tl.where(small, TAYLOR_STEP, tl.where(last, HOLD_STEP, LIFT_STEP))
    kind = tl.where(fast, FAST_STEP, tl.where(holding, HOLD_STEP, kind))
    is_last = converged | last | (holding & (holds >= MAX_HOLDS - 1))
    return kind, is_last, blown, fourths, mean


@triton.jit
def shift_for(progress, max_shift) -> tuple:
    """A shift that makes the eigenvalues of the step before positive, a power of two that keeps M small, the gain."""
    fourth, gain = tl.load(progress + FOURTH_BEFORE), tl.load(progress + ZERO_GAIN_BEFORE)
    # No eigenvalue of E was larger than the root of the root of that sum.
    shift = tl.minimum(max_shift, (0.2 + tl.sqrt(tl.sqrt(fourth))) / (gain * gain))
    exponent = floor_log2(1.2 + shift * gain * gain)
    return shift, power_of_two(-((exponent + 2) >> 1)), gain


@triton.jit
def _may_shift(progress):
    """Once, and if there was a step before."""
    return (tl.load(progress + FOURTH_BEFORE) >= 0) & (tl.load(progress + SHIFT) == 0)


@triton.jit
def growth(c):
    """What a step multiplies an eigenvalue of zero of Z by."""
    return 1 + tl.load(c) + tl.load(c + 1) + tl.load(c + 2) * (1 + FOURTH_POWER)


@triton.jit
def store_next_progress(progress, target, kind, is_last, blown, fourth, max_shift, table):
    pair, gain = tl.load(progress + PAIR), tl.load(progress + ZERO_GAIN)
    if blown:
        shift, factor, gain_before = shift_for(progress, max_shift)
        status = tl.where(_may_shift(progress), RUNNING, FAILED)
        store_progress(target, status, pair, factor * gain_before, shift, 0.0, -1.0, gain)
    else:
        holds = tl.load(progress + HOLDS) + tl.where(kind == HOLD_STEP, 1.0, 0.0)
        status, shift = tl.where(is_last, DONE, RUNNING), tl.load(progress + SHIFT)
        store_progress(target, status, 1 - pair, gain * growth(table + 3 * kind), shift, holds, fourth, gain)
