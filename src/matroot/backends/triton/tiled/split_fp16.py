"""Storage and products of the fast path: matrices in scratch as pairs of float16 matrices.

A matrix times UNIT is the sum of a high and a low float16 matrix (see ``split_fp16`` of the primitives), padded with
zeros to whole tiles. A product is three tensor-core products, whose factors need no conversion.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import UNIT, split_fp16
from .tiles import load_bypass_l1, rows_and_columns

SUM_ROWS = tl.constexpr(6)  # rows of slots per matrix
HIGH_AND_LOW = tl.constexpr(True)
HIGH_ONLY = tl.constexpr(False)


@triton.jit
def matrix_elements(side):
    """float16 numbers of a matrix in scratch: high, then low."""
    return 2 * side * side


@triton.jit
def load_split_if(condition, A, i, j, side, TILE: tl.constexpr):
    """A tile; zero, without reading, unless the condition holds."""
    row, column = rows_and_columns(i, j, TILE)
    high = A + row * side + column
    x = tl.load(high, condition, 0.0, cache_modifier=".cg").to(tl.float32)
    return (x + tl.load(high + side * side, condition, 0.0, cache_modifier=".cg").to(tl.float32)) * (1 / UNIT)


@triton.jit
def load_split(A, i, j, side, TILE: tl.constexpr):
    return load_split_if(True, A, i, j, side, TILE)


@triton.jit
def load_high(A, i, j, side, TILE: tl.constexpr):
    """A tile of the high part alone."""
    row, column = rows_and_columns(i, j, TILE)
    return load_bypass_l1(A + row * side + column).to(tl.float32) * (1 / UNIT)


@triton.jit
def store_split(A, x, i, j, side, TILE: tl.constexpr, PARTS: tl.constexpr = HIGH_AND_LOW):
    high, low = split_fp16(x * UNIT)
    row, column = rows_and_columns(i, j, TILE)
    offset = row * side + column
    tl.store(A + offset, high)
    if PARTS == HIGH_AND_LOW:
        tl.store(A + offset + side * side, low)


@triton.jit
def store_split_symmetric(A, x, i, j, side, TILE: tl.constexpr, PARTS: tl.constexpr = HIGH_AND_LOW):
    """A tile of a symmetric matrix, and its mirror image."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    else:
        store_split(A, tl.trans(x), j, i, side, TILE, PARTS)
    store_split(A, x, i, j, side, TILE, PARTS)


@triton.jit
def _factor_offsets(i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr) -> tuple:
    """Offsets of the first DEPTH columns of the left factor and rows of the right one, for a tile of a product."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    return (i * TILE + lane)[:, None] * side + depth[None, :], depth[:, None] * side + (j * TILE + lane)[None, :]


@triton.jit
def split_matmul(A, B, i, j, extent, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B: of the first ``extent`` columns of A and rows of B."""
    left, right = _factor_offsets(i, j, side, TILE, DEPTH)
    product = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, extent, DEPTH):
        a, b = A + left + k, B + right + k * side
        a0, a1 = load_bypass_l1(a), load_bypass_l1(a + side * side)
        b0, b1 = load_bypass_l1(b), load_bypass_l1(b + side * side)
        product += tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))  # truncated less than one long sum
    return product * (1 / (UNIT * UNIT))


@triton.jit
def _add_fp16_product(product, A, B, i, j, depth, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    left, right = _factor_offsets(i, j, side, TILE, DEPTH)
    for k in range(0, depth, DEPTH):
        product = tl.dot(load_bypass_l1(A + left + k), load_bypass_l1(B + right + k * side), product)
    return product


@triton.jit
def fp16_matmul(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B from the high parts alone."""
    zeros = tl.zeros((TILE, TILE), tl.float32)
    return _add_fp16_product(zeros, A, B, i, j, side, side, TILE, DEPTH) * (1 / (UNIT * UNIT))


@triton.jit
def fp16_anticommutator(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A from the high parts alone, for symmetric A and B.

    On the diagonal it is 2 A B, which takes half the time and has the same symmetric part.
    """
    product = tl.zeros((TILE, TILE), tl.float32)
    product = _add_fp16_product(product, A, B, i, j, side, side, TILE, DEPTH)
    product = _add_fp16_product(product, B, A, i, j, tl.where(i == j, 0, side), side, TILE, DEPTH)
    return product * (tl.where(i == j, 2.0, 1.0) / (UNIT * UNIT))


@triton.jit
def anticommutator(A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B + B A, for symmetric A and B, where B has a high part only."""
    product = tl.zeros((TILE, TILE), tl.float32)
    left, right = _factor_offsets(i, j, side, TILE, DEPTH)
    for k in range(0, side, DEPTH):
        a, b0 = A + left + k, load_bypass_l1(B + right + k * side)
        product += tl.dot(load_bypass_l1(a), b0, tl.dot(load_bypass_l1(a + side * side), b0))
    if i == j:
        product += tl.trans(product)
    else:
        for k in range(0, side, DEPTH):
            b0, a = load_bypass_l1(B + left + k), A + right + k * side
            product += tl.dot(b0, load_bypass_l1(a), tl.dot(b0, load_bypass_l1(a + side * side)))
    return product * (1 / (UNIT * UNIT))
