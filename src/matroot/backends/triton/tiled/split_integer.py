"""Storage and products of the robust path: matrices in scratch in float32, multiplied by integer splitting.

The scratch of a group of programs stays in the L2 cache; matrices are padded with zeros to whole tiles.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import integer_split_matmul
from .tiles import FLAGS, SLOTS, load_bypass_l1, lower_tile_index, rows_and_columns

SUM_ROWS = tl.constexpr(13)  # rows of slots per group, each for one purpose: one may be written while another is read


@triton.jit
def any_deferred(deferred, batch):
    lane = tl.arange(0, SLOTS)
    count = 0
    for start in range(0, batch, SLOTS):
        matrix = (start + lane).to(tl.int64)
        count += tl.sum(tl.load(deferred + matrix * FLAGS, matrix < batch, 0), 0)
    return count > 0


@triton.jit
def tile_index(t, lower, tile_rows):
    """Row and column of tile t of those on and below the diagonal, or of all."""
    i, j = lower_tile_index(t)
    return tl.where(lower, i, t // tile_rows), tl.where(lower, j, t % tile_rows)


@triton.jit
def load_float32(A, i, j, side, TILE: tl.constexpr):
    row, column = rows_and_columns(i, j, TILE)
    return load_bypass_l1(A + row * side + column)


@triton.jit
def store_float32(A, x, i, j, symmetric, side, TILE: tl.constexpr):
    """A tile, and if the matrix is symmetric its mirror image."""
    row, column = rows_and_columns(i, j, TILE)
    if symmetric & (i == j):
        x = 0.5 * x + 0.5 * tl.trans(x)
    tl.store(A + row * side + column, x)
    if symmetric & (i != j):
        row, column = rows_and_columns(j, i, TILE)
        tl.store(A + row * side + column, tl.trans(x))


@triton.jit
def add_product(acc, A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """acc plus a tile of A B."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    left = A + (i * TILE + lane)[:, None] * side + depth[None, :]
    right = B + depth[:, None] * side + (j * TILE + lane)[None, :]
    for k in range(0, side, DEPTH):
        acc += integer_split_matmul(load_bypass_l1(left + k), load_bypass_l1(right + k * side))
    return acc


@triton.jit
def polynomial_product(
    A, Q, i, j, n, s, t, c0, c1, c2,
    QUADRATIC: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of B (c0 I + c1 B + c2 Q), B = s t A: the second factor needs neither storage nor a barrier."""
    acc = tl.zeros((TILE, TILE), tl.float32)
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    left = A + (i * TILE + lane)[:, None] * side + depth[None, :]
    right = depth[:, None] * side + (j * TILE + lane)[None, :]
    for k in range(0, side, DEPTH):
        row, column = k + depth[:, None], (j * TILE + lane)[None, :]
        a = load_bypass_l1(left + k) * s * t
        b = c1 * (load_bypass_l1(A + right + k * side) * s * t)
        b += tl.where((row == column) & (row < n), c0, 0.0)
        if QUADRATIC:
            b += c2 * load_bypass_l1(Q + right + k * side)
        acc += integer_split_matmul(a, b)
    return acc
