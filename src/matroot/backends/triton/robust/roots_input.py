"""Before and after the products of the roots: the input in its scale, and results that are not products."""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import total
from ..scaling import floor_log2, max_abs, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, rows_and_columns, sqrt_power_of_two
from .tiles import buffer, frobenius_norm, relative_sum, store_tile, store_tile_norm, sum_slots, tile_index

SUM_ROWS = tl.constexpr(4)  # of slots
RUNNING = tl.constexpr(0)  # states of a matrix
DONE = tl.constexpr(1)
FAILED = tl.constexpr(2)
ZERO = tl.constexpr(3)

X = tl.constexpr(4)  # buffer
UNIT_X = tl.constexpr(32768.0)  # of matrices with a Frobenius norm of one


@triton.jit(noinline=True)
def measure_tile(source, slots, row, t, n, stride_row, stride_column, tile_rows, TILE: tl.constexpr):
    """Of a tile of the symmetric part: size, sum of squares, trace, and NaN unless all is finite."""
    tl.debug_barrier()
    i, j = tile_index(t, True, tile_rows)
    x = load_symmetric(source, i, j, n, stride_row, stride_column, TILE)
    store_tile_norm(slots, t, row, x, tl.where(i == j, 1.0, 2.0))
    size = max_abs(x)
    relative = tl.where(identity(i, j, n, TILE) > 0, times_power_of_two(x, -floor_log2(size)), 0.0)
    tl.store(slots + 2 * row + t, total(relative))
    tl.store(slots + 3 * row + t, total(x - x))
    tl.debug_barrier()


@triton.jit
def input_scale(slots, row, n, ridge, tiles) -> tuple:
    """Of the matrix divided by 2^exponent, whose Frobenius norm is one at most with its ridge: that exponent, what is
    added to the diagonal, the mean of the eigenvalues, what of it was subtracted, and the state.

    Where the eigenvalues are near their mean, that is subtracted: a large diagonal would cost the digits of small
    entries, since tensor cores truncate sums.
    """
    norm, exponent = frobenius_norm(slots, row, tiles)
    trace = relative_sum(slots, slots + 2 * row, tiles, exponent, 1)
    finite = sum_slots(slots + 3 * row, tiles) == 0
    # The largest modulus is below 2^(exponent + 1); one more power of two for the norm, and one for the ridge.
    lift = floor_log2(norm) + 1 + tl.where(ridge == 0, 0, floor_log2(1 + tl.abs(ridge)) + 1)
    scale = power_of_two(-lift)
    mean = (trace / n) * scale
    added = ridge * mean
    square = norm * scale * (norm * scale) + n * added * (2 * mean + added)
    mean += added
    centre = tl.where(n * mean * mean > 0.5 * square, mean, 0.0)
    state = tl.where(finite & (norm == 0), ZERO, tl.where(finite & (mean > 0), RUNNING, FAILED))
    return exponent + lift, added - centre, mean, centre, state


@triton.jit(noinline=True)
def scale_tile(
    source, scratch, t, n, stride_row, stride_column, exponent, added, side, TILE: tl.constexpr
):  # fmt: skip
    """A tile of the symmetric part in its scale."""
    tl.debug_barrier()
    i, j = tile_index(t, True, side // TILE)
    x = load_symmetric(source, i, j, n, stride_row, stride_column, TILE)
    x = times_power_of_two(x, -exponent) + added * identity(i, j, n, TILE)
    target = buffer(scratch, X, side)
    store_tile(target, target, x, UNIT_X, i, j, True, False, side, TILE)
    tl.debug_barrier()


@triton.jit
def root_scale(exponent, theta, is_root):
    """What the root, or else the inverse root, of the matrix in its scale and divided by theta is multiplied by."""
    root = tl.sqrt(theta)
    return sqrt_power_of_two(tl.where(is_root, exponent, -exponent)) * tl.where(is_root, root, 1 / root)


@triton.jit(noinline=True)
def finish_tile(S, R, t, n, state, shift, exponent, theta, tile_rows, TILE: tl.constexpr):
    """Zero for zero matrices, NaN for those without a root, and lambda/sqrt(lambda + shift) for shifted ones."""
    tl.debug_barrier()
    row, column = rows_and_columns(t // tile_rows, t % tile_rows, TILE)
    inside = (row < n) & (column < n)
    offset = row * n + column
    found = state == DONE
    ratio = root_scale(exponent, theta, True) / root_scale(exponent, theta, False)
    s = tl.load(S + offset, inside & found, 0.0, cache_modifier=".cg")
    r = tl.load(R + offset, inside & found, 0.0, cache_modifier=".cg")
    value = tl.where(state == ZERO, 0.0, float("nan"))
    tl.store(S + offset, tl.where(found, s - shift * (r * ratio), value), inside)
    tl.store(R + offset, value + tl.zeros((TILE, TILE), tl.float32), inside & (not found))
    tl.debug_barrier()
