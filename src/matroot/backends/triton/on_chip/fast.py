"""Roots and gradients on a GPU of easy matrices of middle size, up to 128, in one launch: one program per matrix.

What ``triton_kernels`` and ``triton_solve`` do as long as a matrix is easy. There is no room on chip for the careful
ways: a matrix that is not easy is marked as ``left``.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import FP16X3_TRANSPOSED, UNIT, suits_fast_path, total
from ..tiled.tiles import leave
from .gradient import EASY, balanced, chebyshev_interval, easily, finished, reach, right_side
from .roots import _deliver, _easy, _lanes, _scaled


@triton.jit
def easy_roots_kernel(
    A, S, R, left, table, n, stride_batch, stride_row, stride_column, ridge, N: tl.constexpr
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype."""
    matrix = tl.program_id(0).to(tl.int64)
    _, _, _, eye = _lanes(n, N)
    X, trace, exponent, size = _scaled(A + matrix * stride_batch, n, stride_row, stride_column, ridge, N)
    m1, m2 = trace / n, total(X * X) / n
    done = m2 < 0
    if suits_fast_path(m1, m2, n):
        Y, Z, done = _easy(X, eye, m1, m2, n, table)
        _deliver(S + matrix * n * n, R + matrix * n * n, Y, Z, UNIT, exponent, size, done, n, N)
    leave(left, matrix, not done)


@triton.jit
def easy_solve_kernel(
    S, R, GS, GR, out, left, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    matrix = tl.program_id(0).to(tl.int64)
    row, column, inside, eye = _lanes(n, N)
    place = matrix * n * n + row * n + column
    V, inverse, mu, zero = balanced(S, R, place, inside, eye)
    top = reach(V, n)
    _, _, rate = chebyshev_interval(top)
    easy = (rate < EASY) & (not zero)
    if easy:
        C, unit = right_side(GS, GR, place, inside, inverse, mu, HAS_S, HAS_R, N, FP16X3_TRANSPOSED)
        X = easily(V, C, top, 1e-3)
        tl.store(out + place, finished(X, unit, mu, eye, n, ridge), inside)
    leave(left, matrix, not easy)
