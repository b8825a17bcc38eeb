"""Tiles of matrices, barriers between the programs of a matrix, and sums over tiles: common to both paths.

Every sum over tiles is taken from the same slots in the same order by all programs of a matrix: they take the same
decisions, and results do not depend on their number. Of results that are symmetric but for rounding, only the tiles on
and below the diagonal are computed.

Compile time grows faster than the size of a function. So the larger ones without a product are called, not inlined
(``noinline``). They take and return numbers and pointers only, and begin and end with a barrier: caller and function
use the same shared memory, and Triton synchronises it within functions only
(https://github.com/triton-lang/triton/issues/11326). Products are inlined, since ptxas lets those of a called function
wait for one another; instead all phases share the code of as few as possible.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import total
from ..scaling import floor_log2, max_abs, power_of_two, times_power_of_two

SLOTS = tl.constexpr(256)  # per row of sums: tiles of the largest matrix
BUFFERS = tl.constexpr(6)  # scratch matrices per matrix in work
FLAGS = tl.constexpr(32)  # integers per matrix, a cache line: whether it is deferred, and two counters of barriers
ROBUST_COUNTER = tl.constexpr(1)
FAST_COUNTER = tl.constexpr(2)


@triton.jit
def load_bypass_l1(pointer):
    """Load past the L1 cache, which does not see what other programs have written in the same launch."""
    return tl.load(pointer, cache_modifier=".cg")


@triton.jit
def defer(deferred, matrix, condition):
    """Store whether a matrix is deferred to the robust path; reset the barrier of the robust group of that number."""
    tl.store(deferred + matrix * FLAGS, tl.where(condition, 1, 0))
    tl.store(deferred + matrix * FLAGS + ROBUST_COUNTER, 0)


@triton.jit
def is_deferred(deferred, matrix):
    return load_bypass_l1(deferred + matrix * FLAGS) != 0


@triton.jit
def group_barrier(counter, target, programs):
    """Wait until all programs of a group have arrived; what they wrote is then visible. Returns the next target.

    One thread polls and broadcasts: if each polled by itself, the threads of a program could diverge here, and tensor
    cores need them together.
    """
    tl.debug_barrier()
    arrived = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") + 1
    while arrived < target:
        arrived = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()
    return target + programs


@triton.jit
def lower_tile_count(side, TILE: tl.constexpr):
    """Number of tiles on and below the diagonal."""
    tile_rows = side // TILE
    return tile_rows * (tile_rows + 1) // 2


@triton.jit
def lower_tile_index(t):
    """Row and column of tile t of those on and below the diagonal."""
    i = (0.5 * tl.sqrt(8.0 * tl.cast(t, tl.float32) + 1.0) - 0.49).to(tl.int32)  # sqrt is not correctly rounded
    return i, t - i * (i + 1) // 2


@triton.jit
def weighted_lower_tile(t) -> tuple:
    """Row and column of tile t on or below the diagonal, and its weight in sums over the whole symmetric matrix."""
    i, j = lower_tile_index(t)
    return i, j, tl.where(i == j, 1.0, 2.0)


@triton.jit
def rows_and_columns(i, j, TILE: tl.constexpr) -> tuple:
    lane = tl.arange(0, TILE)
    return (i * TILE + lane)[:, None], (j * TILE + lane)[None, :]


@triton.jit
def identity(i, j, n, TILE: tl.constexpr):
    """A tile of the n x n identity, zero in the padding."""
    row, column = rows_and_columns(i, j, TILE)
    return tl.where((row == column) & (row < n), 1.0, 0.0)


@triton.jit
def load_tile(source, i, j, n, stride_row, stride_column, TILE: tl.constexpr):
    """A tile of a matrix of the caller in float32; offsets may need 64 bits."""
    row, column = rows_and_columns(i, j, TILE)
    offset = row.to(tl.int64) * stride_row + column.to(tl.int64) * stride_column
    return tl.load(source + offset, (row < n) & (column < n), 0.0).to(tl.float32)


@triton.jit
def load_symmetric(source, i, j, n, stride_row, stride_column, TILE: tl.constexpr):
    """A tile of the symmetric part of a matrix of the caller; halved before the sum, which could overflow."""
    mirrored = load_tile(source, j, i, n, stride_row, stride_column, TILE)
    return 0.5 * load_tile(source, i, j, n, stride_row, stride_column, TILE) + 0.5 * tl.trans(mirrored)


@triton.jit
def store_result(target, x, i, j, n, TILE: tl.constexpr):
    """A tile and its mirror image, without the padding, to a contiguous matrix of the caller."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    row, column = rows_and_columns(i, j, TILE)
    tl.store(target + row * n + column, x, (row < n) & (column < n))
    if i != j:
        row, column = rows_and_columns(j, i, TILE)
        tl.store(target + row * n + column, tl.trans(x), (row < n) & (column < n))


@triton.jit
def load_slots(sums, count):
    slot = tl.arange(0, SLOTS)
    return tl.load(sums + slot, slot < count, 0.0, cache_modifier=".cg")


@triton.jit
def sum_slots(sums, count):
    return tl.sum(load_slots(sums, count), 0)


@triton.jit
def store_tile_norm(sums, t, x, weight):
    """Two rows: the largest modulus of a tile, and its weighted sum of squares relative to that power of two."""
    size = max_abs(x)
    x = times_power_of_two(x, -floor_log2(size))
    tl.store(sums + t, size)
    tl.store(sums + SLOTS + t, weight * total(x * x))


@triton.jit
def frobenius_norm(sums, count) -> tuple:
    """m and e such that the Frobenius norm is m 2^e, of what ``store_tile_norm`` stored for ``count`` tiles.

    No square overflows or underflows, whatever the scale; m is zero for the zero matrix and at least one otherwise.
    """
    exponents, squares = floor_log2(load_slots(sums, count)), load_slots(sums + SLOTS, count)
    exponent = tl.max(exponents, 0)
    relative = power_of_two(tl.maximum(2 * (exponents - exponent), -126))
    return tl.sqrt(tl.sum(squares * relative, 0)), exponent


@triton.jit
def unit_exponent(sums, count):
    """The exponent of a unit in which the Frobenius norm is 8 to 16: float16 holds such matrices and their products."""
    norm, exponent = frobenius_norm(sums, count)
    return floor_log2(norm) + exponent - 3


@triton.jit
def sandwich_unit(mu, exponent):
    """The exponent of a unit for R G R, given that of a unit for G and that mu R is about one."""
    return exponent - 2 * floor_log2(mu)


@triton.jit
def sandwich_factor(mu, exponent):
    """2^exponent / mu^2, where the power or the square alone may overflow or underflow."""
    k = floor_log2(mu)
    ratio = power_of_two(k) / mu
    return times_power_of_two(ratio * ratio, exponent - 2 * k)


@triton.jit
def sqrt_power_of_two(exponent):
    """2^(exponent/2) for an integer in [-252, 254]."""
    return power_of_two(exponent >> 1) * tl.where((exponent & 1) == 1, 1.4142135623730951, 1.0)
