"""What a matrix does next in its iteration.

How far it is: the gain, the value of Z at an eigenvalue of zero; the shift relative to theta; holds so far, with those
that settle; and for the step before the sum of fourth powers of the eigenvalues of E, negative if there was none, and
the gain. Z is stored relative to a power of two above the gain.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import TAYLOR_THRESHOLD
from ..scaling import floor_log2, power_of_two
from .schedule import RATIO
from .tiles import sum_slots

MAX_STEPS = tl.constexpr(12)
FAST_STEP = tl.constexpr(2)  # rows of the table
TAYLOR_STEP = tl.constexpr(3)
LIFT_STEP = tl.constexpr(4)
HOLD_STEP = tl.constexpr(5)
SETTLE_STEP = tl.constexpr(6)
FOURTH_POWER = tl.constexpr(RATIO)
SINGULAR_GAIN = tl.constexpr(1e6)  # squared gain at which eigenvalues are zero if they are still small
SETTLES = tl.constexpr(2)
MAX_HOLDS = tl.constexpr(4)  # with those that settle


@triton.jit
def power_above(x):
    return power_of_two(floor_log2(x) + 1)


@triton.jit
def next_step(slots, row, n, step, tile_rows, mirrors, easy, gain, shift, holds) -> tuple:
    """The row of the table, whether this step is the last, whether the iteration blew up, and sums over E.

    These are the sum of the fourth powers of its eigenvalues, and the mean of its eigenvalues.
    """
    tiles = tl.where(mirrors, tile_rows * (tile_rows + 1) // 2, tile_rows * tile_rows)
    squares, fourths = sum_slots(slots, tiles), sum_slots(slots + 2 * row, tiles)
    mean = sum_slots(slots + row, tile_rows) / n
    last = step == MAX_STEPS - 1
    converged = fourths < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD
    # Eigenvalues of E near one, those of M near zero, have fourth powers like their squares.
    singular = (gain * gain > SINGULAR_GAIN) & (fourths > 0.8) & (fourths > 0.3 * squares) & (shift == 0)
    holding = ((holds > 0) | singular) & (not converged)
    # Steps that settle shrink eigenvalues of E above one only up to 3.4.
    blown = (not (fourths < 2 * n + 100)) | (holding & (fourths > 1.2 * squares))
    small = converged | (fourths < 0.13) | (fourths < 0.25 * squares)
    fast = (step == 0) & easy & (not converged)
    kind = tl.where(small, TAYLOR_STEP, tl.where(last, HOLD_STEP, LIFT_STEP))
    kind = tl.where(holding, tl.where(holds < SETTLES, SETTLE_STEP, HOLD_STEP), kind)
    kind = tl.where(fast, FAST_STEP, kind)
    is_last = converged | last | (holding & (holds >= MAX_HOLDS - 1))
    return kind, is_last, blown, fourths, mean


@triton.jit
def shift_for(fourth, gain, max_shift) -> tuple:
    """A shift that makes the eigenvalues of the step before positive, and a power of two that keeps M small."""
    # No eigenvalue of E was larger than the root of the root of that sum.
    shift = tl.minimum(max_shift, (0.2 + tl.sqrt(tl.sqrt(fourth))) / (gain * gain))
    exponent = floor_log2(1.2 + shift * gain * gain)
    return shift, power_of_two(-((exponent + 2) >> 1))


@triton.jit
def growth(c):
    """What a step multiplies an eigenvalue of zero of Z by."""
    return 1 + tl.load(c) + tl.load(c + 1) + tl.load(c + 2) * (1 + FOURTH_POWER)
