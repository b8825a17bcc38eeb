"""Before and after the products of the roots: the input in its scale, and results that are not products.

``stats`` of a matrix: the exponent of its scale, its state, the mean of its eigenvalues in that scale, what was
subtracted from its diagonal, theta, and whether it seems well-conditioned. Then twice, for even and odd steps, so that
no launch reads what it writes: see ``roots_steps``.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, rows_and_columns, sqrt_power_of_two
from .tiles import (
    buffer,
    frobenius_norm,
    lower_count,
    matrix_and_tile,
    relative_sum,
    row_of_slots,
    store_tile,
    store_tile_norm,
    sum_slots,
    tile_index,
)

SUM_ROWS = tl.constexpr(4)  # of slots per matrix
STATS = tl.constexpr(32)  # numbers per matrix
EXPONENT = tl.constexpr(0)
STATE = tl.constexpr(1)
MEAN = tl.constexpr(2)
CENTRE = tl.constexpr(3)
THETA = tl.constexpr(4)
SEEMS_EASY = tl.constexpr(5)
PROGRESS = tl.constexpr(8)  # of even steps, then of odd ones
PROGRESS_SIZE = tl.constexpr(8)
STATUS = tl.constexpr(0)  # in the progress: where the iteration stands
SHIFT = tl.constexpr(3)
RUNNING = tl.constexpr(0.0)  # states of a matrix
DONE = tl.constexpr(1.0)
FAILED = tl.constexpr(2.0)
ZERO = tl.constexpr(3.0)

X = tl.constexpr(4)  # buffers
SQUARE = tl.constexpr(5)
UNIT_X = tl.constexpr(32768.0)  # of matrices with a Frobenius norm of one


@triton.jit(do_not_specialize=["n"])
def measure_kernel(
    A, sums, n, stride_batch, stride_row, stride_column, side, TILE: tl.constexpr
):  # fmt: skip
    """Of each tile of the symmetric part: size, sum of squares, trace, and NaN unless all is finite."""
    tile_rows = side // TILE
    matrix, t = matrix_and_tile(lower_count(side, TILE), False)
    i, j = tile_index(t, True, tile_rows)
    x = load_symmetric(A + matrix * stride_batch, i, j, n, stride_row, stride_column, TILE)
    row = row_of_slots(side)
    slots = sums + matrix * (SUM_ROWS * row)
    store_tile_norm(slots, t, row, x, tl.where(i == j, 1.0, 2.0))
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    relative = tl.where(identity(i, j, n, TILE) > 0, times_power_of_two(x, -floor_log2(size)), 0.0)
    tl.store(slots + 2 * row + t, total(relative))
    tl.store(slots + 3 * row + t, total(x - x))


@triton.jit(do_not_specialize=["n"])
def scale_kernel(
    A, scratch, sums, stats, n, stride_batch, stride_row, stride_column, ridge, side, TILE: tl.constexpr
):  # fmt: skip
    """The symmetric part with its ridge, of Frobenius norm one at most.

    Where the eigenvalues are near their mean, that is subtracted: a large diagonal would cost the digits of small
    entries, since tensor cores truncate sums.
    """
    tile_rows = side // TILE
    lower_tiles = lower_count(side, TILE)
    matrix, t = matrix_and_tile(lower_tiles, True)
    i, j = tile_index(t, True, tile_rows)
    row = row_of_slots(side)
    slots = sums + matrix * (SUM_ROWS * row)
    norm, exponent = frobenius_norm(slots, row, lower_tiles)
    trace = relative_sum(slots, slots + 2 * row, lower_tiles, exponent, 1)
    finite = sum_slots(slots + 3 * row, lower_tiles) == 0
    # The largest modulus is below 2^(exponent + 1); one more power of two for the norm, and one for the ridge.
    lift = floor_log2(norm) + 1 + tl.where(ridge == 0, 0, floor_log2(1 + tl.abs(ridge)) + 1)
    scale = power_of_two(-lift)
    mean = (trace / n) * scale
    added = ridge * mean
    square = norm * scale * (norm * scale) + n * added * (2 * mean + added)
    mean += added
    centre = tl.where(n * mean * mean > 0.5 * square, mean, 0.0)
    exponent += lift
    x = load_symmetric(A + matrix * stride_batch, i, j, n, stride_row, stride_column, TILE)
    x = times_power_of_two(x, -exponent) + (added - centre) * identity(i, j, n, TILE)
    target = buffer(scratch, matrix, X, side)
    store_tile(target, target, x, UNIT_X, i, j, True, False, side, TILE)
    if t == 0:
        stats += matrix * STATS
        state = tl.where(finite & (norm == 0), ZERO, tl.where(finite & (mean > 0), RUNNING, FAILED))
        tl.store(stats + EXPONENT, exponent.to(tl.float32))
        tl.store(stats + STATE, state)
        tl.store(stats + MEAN, mean)
        tl.store(stats + CENTRE, centre)


@triton.jit
def root_scale(stats, is_root):
    """What the root, or else the inverse root, of the matrix in its scale and divided by theta is multiplied by."""
    exponent = tl.load(stats + EXPONENT).to(tl.int32)
    root = tl.sqrt(tl.load(stats + THETA))
    return sqrt_power_of_two(tl.where(is_root, exponent, -exponent)) * tl.where(is_root, root, 1 / root)


@triton.jit(do_not_specialize=["n", "parity"])
def finish_kernel(S, R, stats, n, parity, side, TILE: tl.constexpr):
    """Zero for zero matrices, NaN for those without a root, and lambda/sqrt(lambda + shift) for shifted ones."""
    tile_rows = side // TILE
    matrix, t = matrix_and_tile(tile_rows * tile_rows, False)
    stats += matrix * STATS
    progress = stats + PROGRESS + PROGRESS_SIZE * parity
    status, shift = tl.load(progress + STATUS), tl.load(progress + SHIFT)
    if (status != DONE) | (shift > 0):
        row, column = rows_and_columns(t // tile_rows, t % tile_rows, TILE)
        inside = (row < n) & (column < n)
        offset = matrix * n * n + row * n + column
        if status == DONE:
            ratio = root_scale(stats, True) / root_scale(stats, False)
            s, r = tl.load(S + offset, inside, 0.0), tl.load(R + offset, inside, 0.0)
            tl.store(S + offset, s - shift * (r * ratio), inside)
        else:
            value = tl.where(status == ZERO, 0.0, float("nan")) + tl.zeros((TILE, TILE), tl.float32)
            tl.store(S + offset, value, inside)
            tl.store(R + offset, value, inside)
