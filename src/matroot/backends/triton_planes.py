"""Matrices in tiles of float16, for kernels with one program per tile.

A matrix is a pair of float16 matrices (see ``halves``), padded with zeros to whole tiles: a product is three of tensor
cores, which then take their factors from memory as they are.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import LOW, _total, halves
from .triton_tiles import LINE, SLOTS, index, octave, slots

BUFFERS = tl.constexpr(6)  # matrices in the scratch of a matrix
SUMS = tl.constexpr(7)  # rows of slots for sums of tiles


@triton.jit
def whereabouts(count) -> tuple:
    """The matrix and the tile of this program, given how many tiles a matrix has."""
    return (tl.program_id(0) // count).to(tl.int64), tl.program_id(0) % count


@triton.jit
def extent(side, TILE: tl.constexpr) -> tuple:
    """Half numbers a matrix takes in the scratch, and its tiles on and below the diagonal."""
    across = side // TILE
    return 2 * side * side, across * (across + 1) // 2


@triton.jit
def here(left, matrix):
    """Whether a matrix is not left."""
    return tl.load(left + matrix * LINE) == 0


@triton.jit
def read(A, i, j, side, TILE: tl.constexpr):
    row, column = index(i, j, TILE)
    place = A + row * side + column
    return tl.load(place).to(tl.float32) + tl.load(place + side * side).to(tl.float32) * (1 / LOW)


@triton.jit
def write(A, x, i, j, side, TILE: tl.constexpr):
    """Write a tile as it is."""
    high, low = halves(x)
    row, column = index(i, j, TILE)
    place = A + row * side + column
    tl.store(place, high)
    tl.store(place + side * side, low)


@triton.jit
def write_both(A, x, i, j, side, TILE: tl.constexpr):
    """Write a tile of a symmetric matrix, and its mirror image."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    else:
        write(A, tl.trans(x), j, i, side, TILE)
    write(A, x, i, j, side, TILE)


@triton.jit
def _places(i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr) -> tuple:
    """Where the first columns of one factor and rows of the other for a tile of their product are."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    return (i * TILE + lane)[:, None] * side + depth[None, :], depth[:, None] * side + (j * TILE + lane)[None, :]


@triton.jit
def multiply(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B."""
    left, right = _places(i, j, side, TILE, DEPTH)
    high = tl.zeros((TILE, TILE), tl.float32)
    low = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, side, DEPTH):
        one, other = A + left + k, B + right + k * side
        a0, a1, b0, b1 = tl.load(one), tl.load(one + side * side), tl.load(other), tl.load(other + side * side)
        low = tl.dot(a1, b0, tl.dot(a0, b1, low))
        high += tl.dot(a0, b0)  # long sums are truncated less in parts
    return high + low * (1 / LOW)


@triton.jit
def multiply_roughly(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A in half precision."""
    left, right = _places(i, j, side, TILE, DEPTH)
    found = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, side, DEPTH):
        found = tl.dot(tl.load(A + left + k), tl.load(B + right + k * side), found)
    for k in range(0, side, DEPTH):
        found = tl.dot(tl.load(B + left + k), tl.load(A + right + k * side), found)
    return found


@triton.jit
def note(sums, t, x, weight):
    """The largest modulus of a tile, and the sum of its squares relative to that."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    x *= tl.exp2(-octave(size))
    tl.store(sums + t, size)
    tl.store(sums + SLOTS + t, weight * _total(x * x))


@triton.jit
def norm_unit(sums, count):
    """A power of two that leaves a norm of 8 to 16 of what was noted, so that half numbers hold it and its products."""
    octaves = octave(slots(sums, count))
    most = tl.max(octaves, 0)
    squares = tl.sum(slots(sums + SLOTS, count) * tl.exp2(2 * (octaves - most)), 0)
    return tl.exp2(tl.minimum(tl.maximum(tl.floor(most + 0.5 * tl.log2(squares)) - 3, -120.0), 120.0))
