"""Matrices in scratch as pairs of float16 matrices, a tile of their product, and sums over tiles.

A matrix times a unit, a power of two, is the sum of a high and a low float16 matrix, padded with zeros to whole tiles.
A launch has one program per tile, and no program waits for another: what a launch writes, the next one reads. Sums over
tiles have a slot per tile, which every program of the next launch adds in the same order, so that all of them take the
same decisions and results do not depend on the batch.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import split_fp16, total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import lower_tile_index, rows_and_columns

BUFFERS = tl.constexpr(8)  # scratch matrices per matrix in work
GROUP = tl.constexpr(8)  # rows of tiles that are computed together: what they share stays in the L2 cache
BLOCK = tl.constexpr(1024)  # slots that are added at a time
SMALL_TILE = tl.constexpr(64)  # of kernels without products; larger tiles have fewer slots


@triton.jit
def matrix_and_tile(tiles, backwards) -> tuple:
    """The matrix of this program and the number of its tile.

    Alternate launches go forwards and backwards through the batch: what one of them wrote last is still in the cache.
    """
    matrix = tl.program_id(0) // tiles
    last = tl.num_programs(0) // tiles - 1
    return tl.where(backwards, last - matrix, matrix).to(tl.int64), tl.program_id(0) % tiles


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
def buffer(scratch, matrix, number, side):
    """Where a scratch matrix begins; offsets above 2^31 occur here only."""
    plane = tl.cast(side, tl.int64) * side
    return scratch + (matrix * BUFFERS + number) * 2 * plane


@triton.jit
def load_planes(A, condition, i, j, side, TILE: tl.constexpr):
    """A tile times its unit; zero, without reading, unless the condition holds."""
    row, column = rows_and_columns(i, j, TILE)
    high = A + row * side + column
    x = tl.load(high, condition, 0.0).to(tl.float32)
    return x + tl.load(high + side * side, condition, 0.0).to(tl.float32)


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
        a0, a1 = tl.load(a), tl.load(a + side * side)
        b0, b1 = tl.load(b), tl.load(b + side * side)
        product += tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))
    return product


@triton.jit
def row_of_slots(side):
    """Slots of a row of sums."""
    return (side // SMALL_TILE) * (side // SMALL_TILE)


@triton.jit
def lower_count(side, TILE: tl.constexpr):
    """Tiles on and below the diagonal."""
    return (side // TILE) * (side // TILE + 1) // 2


@triton.jit
def sum_slots(slots, count):
    lane = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        found += tl.load(slots + start + lane, start + lane < count, 0.0)
    return tl.sum(found, 0)


@triton.jit
def store_tile_norm(slots, t, row, x, weight):
    """Two rows: the largest modulus of a tile, and its weighted sum of squares relative to that power of two."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    x = times_power_of_two(x, -floor_log2(size))
    tl.store(slots + t, size)
    tl.store(slots + row + t, weight * total(x * x))


@triton.jit
def largest_exponent(sizes, count):
    """That of the largest modulus of all tiles: 128 if one is Inf or NaN, -126 for the zero matrix."""
    lane = tl.arange(0, BLOCK)
    found = tl.full((BLOCK,), -126, tl.int32)
    for start in range(0, count, BLOCK):
        size = tl.load(sizes + start + lane, start + lane < count, 0.0)
        found = tl.maximum(found, floor_log2(size))
    return tl.max(found, 0)


@triton.jit
def relative_sum(sizes, terms, count, exponent, power):
    """The sum of terms that are relative to this power of their tile's 2^floor(log2(size)), relative to 2^exponent."""
    lane = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        inside = start + lane < count
        difference = floor_log2(tl.load(sizes + start + lane, inside, 0.0)) - exponent
        found += tl.load(terms + start + lane, inside, 0.0) * power_of_two(tl.maximum(power * difference, -126))
    return tl.sum(found, 0)


@triton.jit
def frobenius_norm(slots, row, count) -> tuple:
    """m and e such that the Frobenius norm is m 2^e, of what ``store_tile_norm`` stored: no square leaves the range."""
    exponent = largest_exponent(slots, count)
    return tl.sqrt(relative_sum(slots, slots + row, count, exponent, 2)), exponent
