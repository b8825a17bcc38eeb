"""Matrices in tiles of float16, for kernels with one program per tile at a time.

A matrix times UNIT is a pair of float16 matrices (see ``halves``), padded with zeros to whole tiles: a product is three
of tensor cores, which then take their factors from memory as they are.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import UNIT, split_fp16, total
from .tiles import LINE, SLOTS, floor_log2, index, slots

BUFFERS = tl.constexpr(6)  # matrices in the scratch of a matrix
SUMS = tl.constexpr(6)  # rows of slots for sums of tiles
LANES = tl.constexpr(1024)  # rows of the largest matrix
FULL = tl.constexpr(True)  # a tile is written with its lower halves
HALF = tl.constexpr(False)  # or without


@triton.jit
def whereabouts(count, back=False) -> tuple:
    """The matrix and the tile of this program, given how many tiles a matrix has.

    Launches by turns begin with the first matrix and go back from the last: what one of them wrote at the end is still
    in the cache.
    """
    matrix = tl.program_id(0) // count
    return tl.where(back, tl.num_programs(0) // count - 1 - matrix, matrix).to(tl.int64), tl.program_id(0) % count


@triton.jit
def area(side):
    """Half numbers a matrix takes in the scratch."""
    return 2 * side * side


@triton.jit
def half_of(side, TILE: tl.constexpr):
    """Tiles of a matrix on and below the diagonal."""
    across = side // TILE
    return across * (across + 1) // 2


@triton.jit
def fresh(place):
    """What is there, though other programs may have written it in the same launch: past the first cache."""
    return tl.load(place, cache_modifier=".cg")


@triton.jit
def here(left, matrix):
    """Whether a matrix is not left."""
    return fresh(left + matrix * LINE) == 0


@triton.jit
def read(A, i, j, side, TILE: tl.constexpr):
    row, column = index(i, j, TILE)
    place = A + row * side + column
    return (fresh(place).to(tl.float32) + fresh(place + side * side).to(tl.float32)) * (1 / UNIT)


@triton.jit
def read_high(A, i, j, side, TILE: tl.constexpr):
    """A tile without its lower halves."""
    row, column = index(i, j, TILE)
    return fresh(A + row * side + column).to(tl.float32) * (1 / UNIT)


@triton.jit
def write(A, x, i, j, side, TILE: tl.constexpr, LOW: tl.constexpr = FULL):
    """Write a tile as it is, with its lower halves or without."""
    high, low = split_fp16(x * UNIT)
    row, column = index(i, j, TILE)
    place = A + row * side + column
    tl.store(place, high)
    if LOW:
        tl.store(place + side * side, low)


@triton.jit
def write_both(A, x, i, j, side, TILE: tl.constexpr, LOW: tl.constexpr = FULL):
    """Write a tile of a symmetric matrix, and its mirror image."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    else:
        write(A, tl.trans(x), j, i, side, TILE, LOW)
    write(A, x, i, j, side, TILE, LOW)


@triton.jit
def _places(i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr) -> tuple:
    """Where the first columns of one factor and rows of the other for a tile of their product are."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    return (i * TILE + lane)[:, None] * side + depth[None, :], depth[:, None] * side + (j * TILE + lane)[None, :]


@triton.jit
def multiply(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B."""
    left, right = _places(i, j, side, TILE, DEPTH)
    found = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, side, DEPTH):
        one, other = A + left + k, B + right + k * side
        a0, a1, b0, b1 = fresh(one), fresh(one + side * side), fresh(other), fresh(other + side * side)
        found += tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))  # long sums are truncated less in parts
    return found * (1 / (UNIT * UNIT))


@triton.jit
def _add_roughly(found, A, B, i, j, depth, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    left, right = _places(i, j, side, TILE, DEPTH)
    for k in range(0, depth, DEPTH):
        found = tl.dot(fresh(A + left + k), fresh(B + right + k * side), found)
    return found


@triton.jit
def multiply_roughly(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B in half precision."""
    nothing = tl.zeros((TILE, TILE), tl.float32)
    return _add_roughly(nothing, A, B, i, j, side, side, TILE, DEPTH) * (1 / (UNIT * UNIT))


@triton.jit
def anticommutator_roughly(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A in half precision, for symmetric A and B; of one on the diagonal only the symmetric part is
    right, as that of twice A B is, which is sooner to be had."""
    found = tl.zeros((TILE, TILE), tl.float32)
    found = _add_roughly(found, A, B, i, j, side, side, TILE, DEPTH)
    found = _add_roughly(found, B, A, i, j, tl.where(i == j, 0, side), side, TILE, DEPTH)
    return found * (tl.where(i == j, 2.0, 1.0) / (UNIT * UNIT))


@triton.jit
def anticommutator(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A, for symmetric A and B, where B has no lower halves."""
    found = tl.zeros((TILE, TILE), tl.float32)
    left, right = _places(i, j, side, TILE, DEPTH)
    for k in range(0, side, DEPTH):
        one, b = A + left + k, fresh(B + right + k * side)
        found += tl.dot(fresh(one), b, tl.dot(fresh(one + side * side), b))
    if i == j:
        found += tl.trans(found)
    else:
        for k in range(0, side, DEPTH):
            b, other = fresh(B + left + k), A + right + k * side
            found += tl.dot(b, fresh(other), tl.dot(b, fresh(other + side * side)))
    return found * (1 / (UNIT * UNIT))


@triton.jit
def note(sums, t, x, weight):
    """The largest modulus of a tile, and the sum of its squares relative to that."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    x *= tl.exp2(-floor_log2(size))
    tl.store(sums + t, size)
    tl.store(sums + SLOTS + t, weight * total(x * x))


@triton.jit
def norm_unit(sums, count):
    """A power of two that leaves a norm of 8 to 16 of what was noted, so that half numbers hold it and its products."""
    octaves, squares = floor_log2(slots(sums, count)), slots(sums + SLOTS, count)
    most = tl.max(octaves, 0)
    squares = tl.sum(squares * tl.exp2(2 * (octaves - most)), 0)
    return tl.exp2(tl.minimum(tl.maximum(tl.floor(most + 0.5 * tl.log2(squares)) - 3, -120.0), 120.0))
