"""Matrices in tiles of float16, for kernels with one program per tile.

A matrix is a pair of float16 matrices (see ``halves``), padded with zeros to whole tiles: a product is three of tensor
cores, which then take their factors from memory as they are.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import LOW, _total, halves
from .triton_tiles import index, octave, slots

BUFFERS = tl.constexpr(6)  # matrices in the scratch of a matrix
SUMS = tl.constexpr(7)  # rows of slots for sums of tiles


@triton.jit
def whereabouts(count: tl.constexpr) -> tuple:
    """The matrix and the tile of this program, given how many tiles a matrix has."""
    return (tl.program_id(0) // count).to(tl.int64), tl.program_id(0) % count


@triton.jit
def read(A, i, j, SIZE: tl.constexpr, TILE: tl.constexpr):
    row, column = index(i, j, TILE)
    place = A + row * SIZE + column
    return tl.load(place).to(tl.float32) + tl.load(place + SIZE * SIZE).to(tl.float32) * (1 / LOW)


@triton.jit
def write(A, x, i, j, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Write a tile as it is."""
    high, low = halves(x)
    row, column = index(i, j, TILE)
    place = A + row * SIZE + column
    tl.store(place, high)
    tl.store(place + SIZE * SIZE, low)


@triton.jit
def write_both(A, x, i, j, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Write a tile of a symmetric matrix, and its mirror image."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    else:
        write(A, tl.trans(x), j, i, SIZE, TILE)
    write(A, x, i, j, SIZE, TILE)


@triton.jit
def _factors(A, B, i, j, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr) -> tuple:
    """Where the first columns of A and rows of B for a tile of A B are."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    left = A + (i * TILE + lane)[:, None] * SIZE + depth[None, :]
    return left, B + depth[:, None] * SIZE + (j * TILE + lane)[None, :]


@triton.jit
def _add(high, low, left, right, k, SIZE: tl.constexpr) -> tuple:
    """What the columns and rows from k on contribute to a product."""
    a0, a1 = tl.load(left + k), tl.load(left + k + SIZE * SIZE)
    b0, b1 = tl.load(right + k * SIZE), tl.load(right + k * SIZE + SIZE * SIZE)
    low = tl.dot(a1, b0, tl.dot(a0, b1, low))
    return tl.dot(a0, b0, high), low


@triton.jit
def multiply(A, B, i, j, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B."""
    left, right = _factors(A, B, i, j, SIZE, TILE, DEPTH)
    high = tl.zeros((TILE, TILE), tl.float32)
    low = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, SIZE, DEPTH):
        high, low = _add(high, low, left, right, k, SIZE)
    return high + low * (1 / LOW)


@triton.jit
def multiply_both(A, B, i, j, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A: of small tiles in one go, which hides latency; large ones leave no room for that."""
    if TILE > 32:
        found = multiply(A, B, i, j, SIZE, TILE, DEPTH) + multiply(B, A, i, j, SIZE, TILE, DEPTH)
    else:
        left, right = _factors(A, B, i, j, SIZE, TILE, DEPTH)
        other_left, other_right = _factors(B, A, i, j, SIZE, TILE, DEPTH)
        high = tl.zeros((TILE, TILE), tl.float32)
        low = tl.zeros((TILE, TILE), tl.float32)
        for k in range(0, SIZE, DEPTH):
            high, low = _add(high, low, left, right, k, SIZE)
            high, low = _add(high, low, other_left, other_right, k, SIZE)
        found = high + low * (1 / LOW)
    return found


@triton.jit
def note(sums, t, x, weight, SLOTS: tl.constexpr):
    """The largest modulus of a tile, and the sum of its squares relative to that."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    x *= tl.exp2(-octave(size))
    tl.store(sums + t, size)
    tl.store(sums + SLOTS + t, weight * _total(x * x))


@triton.jit
def norm_unit(sums, count, SLOTS: tl.constexpr):
    """A power of two that leaves a norm of 8 to 16 of what was noted, so that half numbers hold it and its products."""
    octaves = octave(slots(sums, count, SLOTS))
    most = tl.max(octaves, 0)
    squares = tl.sum(slots(sums + SLOTS, count, SLOTS) * tl.exp2(2 * (octaves - most)), 0)
    return tl.exp2(tl.minimum(tl.maximum(tl.floor(most + 0.5 * tl.log2(squares)) - 3, -120.0), 120.0))
