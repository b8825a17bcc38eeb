"""Roots and gradients by the fast path alone, up to n = 128, in one launch: one program per matrix.

The chip does not hold the robust path for matrices of this size. A matrix that needs it is deferred: marked for the
launch that follows. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import FP16X3_TRANSPOSED, UNIT, suits_fast_path, sum_of_squares
from ..scaling import identity
from ..tiled.tiles import defer
from .gradient import (
    CHEBYSHEV_RATE,
    chebyshev_interval,
    preconditioned_operator,
    refined_chebyshev,
    right_side,
    spectral_bound,
    store_gradient,
)
from .roots import fast_roots, load_with_ridge, store_roots


@triton.jit
def fast_roots_kernel(
    A, S, R, deferred, table, n, stride_batch, stride_row, stride_column, ridge, N: tl.constexpr
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype."""
    matrix = tl.program_id(0).to(tl.int64)
    eye = identity(n, N)
    X, trace, exponent, size = load_with_ridge(A + matrix * stride_batch, n, stride_row, stride_column, ridge, N)
    m1, m2 = trace / n, sum_of_squares(X) / n
    converged = m2 < 0
    if suits_fast_path(m1, m2, n):
        Y, Z, converged = fast_roots(X, eye, m1, m2, n, table)
        store_roots(S + matrix * n * n, R + matrix * n * n, Y, Z, UNIT, exponent, size, converged, n, N)
    defer(deferred, matrix, not converged)


@triton.jit
def fast_solve_kernel(
    S, R, GS, GR, out, deferred, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    matrix = tl.program_id(0).to(tl.int64)
    start = matrix * n * n
    V, inverse, mu, shift, zero = preconditioned_operator(S + start, R + start, n, N)
    top = spectral_bound(V, n)
    _, _, rate = chebyshev_interval(top)
    fast = (rate < CHEBYSHEV_RATE) & (not zero)
    if fast:
        C, exponent = right_side(GS + start, GR + start, n, inverse, mu, shift, HAS_S, HAS_R, N, FP16X3_TRANSPOSED)
        X = refined_chebyshev(V, C, top, 1e-3)
        store_gradient(out + start, X, exponent - shift, mu, ridge, n, N)
    defer(deferred, matrix, not fast)
