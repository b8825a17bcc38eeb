"""Matrices in scratch as pairs of float16 matrices, a tile of their product, and sums over tiles.

A matrix times a unit, a power of two, is the sum of a high and a low float16 matrix, padded with zeros to whole tiles.
Sums over tiles have a slot per tile, which every program of a matrix adds in the same order: all of them take the same
decisions, and results depend neither on the batch nor on the number of programs.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import split_fp16, total
from ..scaling import floor_log2, max_abs, power_of_two, times_power_of_two
from ..tiled.tiles import FLAGS, load_bypass_l1, lower_tile_index, rows_and_columns

BUFFERS = tl.constexpr(8)  # scratch matrices per matrix in work
GROUP = tl.constexpr(8)  # rows of tiles that are computed together: what they share stays in the L2 cache
BLOCK = tl.constexpr(256)  # slots, or flags of matrices, that are added at a time


@triton.jit
def any_deferred(deferred, batch):
    lane = tl.arange(0, BLOCK)
    count = 0
    for start in range(0, batch, BLOCK):
        matrix = (start + lane).to(tl.int64)
        count += tl.sum(tl.load(deferred + matrix * FLAGS, matrix < batch, 0), 0)
    return count > 0


@triton.jit
def tile_index(t, lower, tile_rows) -> tuple:
    """Row and column of tile t: of those on and below the diagonal if ``lower``, else of all. GROUP rows at a time."""
    plain, _ = lower_tile_index(t)
    first = tl.where(lower, plain // GROUP, t // (GROUP * tile_rows)) * GROUP
    rows = tl.minimum(GROUP, tile_rows - first)
    local = t - tl.where(lower, first * (first + 1) // 2, first * tile_rows)
    # Whole columns of the group, then in a lower group the triangle that is left.
    whole = tl.where(lower, first, tile_rows) * rows
    row, column = lower_tile_index(tl.maximum(local - whole, 0))
    inside = local < whole
    return first + tl.where(inside, local % rows, row), tl.where(inside, local // rows, first + column)


@triton.jit
def buffer(scratch, number, side):
    """Where a scratch matrix of a group begins; offsets above 2^31 occur here only."""
    return scratch + number * (2 * tl.cast(side, tl.int64) * side)


@triton.jit
def load_planes(A, condition, i, j, side, TILE: tl.constexpr):
    """A tile times its unit; zero, without reading, unless the condition holds."""
    row, column = rows_and_columns(i, j, TILE)
    high = A + row * side + column
    x = tl.load(high, condition, 0.0, cache_modifier=".cg").to(tl.float32)
    return x + tl.load(high + side * side, condition, 0.0, cache_modifier=".cg").to(tl.float32)


@triton.jit
def _store_planes(A, x, i, j, side, TILE: tl.constexpr):
    high, low = split_fp16(x)
    row, column = rows_and_columns(i, j, TILE)
    offset = row * side + column
    tl.store(A + offset, high)
    tl.store(A + offset + side * side, low)


@triton.jit
def store_tile(A, transposed, x, unit, i, j, symmetric, has_transpose, side, TILE: tl.constexpr):
    """A tile; and its mirror image if the matrix is symmetric, or if its transpose is stored as well."""
    mirrored = tl.trans(x)
    if symmetric & (i == j):
        x = 0.5 * x + 0.5 * mirrored
    _store_planes(A, x * unit, i, j, side, TILE)
    if (symmetric & (i != j)) | has_transpose:
        _store_planes(transposed, mirrored * unit, j, i, side, TILE)


@triton.jit
def product_tile(
    left, right, left_2, right_2, i, j, depth, extent, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """A tile of left right, and beyond ``depth`` up to ``extent`` of left_2 right_2 as well, times both units.

    One loop for both, since compiling a loop takes long. Short sums, added in float32, are truncated less than long
    ones.
    """
    lane, inner = tl.arange(0, TILE), tl.arange(0, DEPTH)
    rows = ((i * TILE + lane) * side)[:, None] + inner[None, :]
    columns = inner[:, None] * side + (j * TILE + lane)[None, :]
    product = tl.zeros((TILE, TILE), tl.float32)
    for position in range(0, extent, DEPTH):
        second = position >= depth
        k = tl.where(second, position - depth, position)
        a = tl.where(second, left_2, left) + rows + k
        b = tl.where(second, right_2, right) + columns + k * side
        a0, a1 = load_bypass_l1(a), load_bypass_l1(a + side * side)
        b0, b1 = load_bypass_l1(b), load_bypass_l1(b + side * side)
        product += tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))
    return product


@triton.jit
def _load_slots(slots, lane, count):
    return tl.load(slots + lane, lane < count, 0.0, cache_modifier=".cg")


@triton.jit(noinline=True)
def sum_slots(slots, count):
    tl.debug_barrier()
    lane = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        found += _load_slots(slots, start + lane, count)
    result = tl.sum(found, 0)
    tl.debug_barrier()
    return result


@triton.jit
def store_tile_norm(slots, t, row, x, weight):
    """Two rows: the largest modulus of a tile, and its weighted sum of squares relative to that power of two."""
    size = max_abs(x)
    x = times_power_of_two(x, -floor_log2(size))
    tl.store(slots + t, size)
    tl.store(slots + row + t, weight * total(x * x))


@triton.jit
def largest_exponent(sizes, count):
    """That of the largest modulus of all tiles: 128 if one is Inf or NaN, -126 for the zero matrix."""
    lane = tl.arange(0, BLOCK)
    found = tl.full((BLOCK,), -126, tl.int32)
    for start in range(0, count, BLOCK):
        found = tl.maximum(found, floor_log2(_load_slots(sizes, start + lane, count)))
    return tl.max(found, 0)


@triton.jit(noinline=True)
def relative_sum(sizes, terms, count, exponent, power):
    """The sum of terms that are relative to this power of their tile's 2^floor(log2(size)), relative to 2^exponent."""
    tl.debug_barrier()
    lane = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        difference = floor_log2(_load_slots(sizes, start + lane, count)) - exponent
        found += _load_slots(terms, start + lane, count) * power_of_two(tl.maximum(power * difference, -126))
    result = tl.sum(found, 0)
    tl.debug_barrier()
    return result


@triton.jit(noinline=True)
def frobenius_norm(slots, row, count) -> tuple:
    """m and e such that the Frobenius norm is m 2^e, of what ``store_tile_norm`` stored: no square leaves the range."""
    tl.debug_barrier()
    exponent = largest_exponent(slots, count)
    norm = tl.sqrt(relative_sum(slots, slots + row, count, exponent, 2))
    tl.debug_barrier()
    return norm, exponent
