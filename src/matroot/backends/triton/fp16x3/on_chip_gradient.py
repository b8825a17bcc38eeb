"""Gradients of roots on a GPU in one launch: one program per matrix, everything on chip.

The equation and Chebyshev's iteration for it are those of on_chip/gradient.py, here for all condition numbers: in half
precision for X, and once more for the residual, which is computed in float32. The eigenvalues of V end near the fourth
root of the condition number, so that steps are some dozens where matrices are as ill-conditioned as float32 allows. R
alone costs such gradients more digits than half precision does. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import preconditioned_operator, refined_chebyshev, store_gradient
from ..primitives import FP16, FP16X3_TRANSPOSED, UNIT, eigenvalue_bound, matmul, sum_of_squares
from ..scaling import add_scaled, floor_log2, load_symmetric, normalized, power_of_two

MAX_TOP = tl.constexpr(700.0)
"""Of what roots leave V - 2 I is below: its eigenvalues here only bound the number of steps."""


@triton.jit
def _spectral_bound(V, n):
    """Bound of the largest eigenvalue of V; half precision is enough for that."""
    m2, m4 = sum_of_squares(V) / n, sum_of_squares(matmul(V, V, FP16)) / n
    return tl.minimum(tl.maximum(1.001 * eigenvalue_bound(m2, m4, n), 0.01), MAX_TOP)


@triton.jit
def _tolerance(top):
    """Error of one run of the iteration. R costs gradients its own error, which grows with the condition number."""
    return tl.minimum(tl.maximum(8e-6 * top * top, 1e-3), 2e-2)


@triton.jit
def _sandwich(inverse, C, reduction):
    """(mu R) C (mu R), given ``reduction`` mu R in UNIT."""
    factor = 1 / (UNIT * UNIT * reduction * reduction)
    return matmul(matmul(inverse, C, FP16X3_TRANSPOSED), inverse, FP16X3_TRANSPOSED) * factor


@triton.jit
def _right_side(
    GS, GR, n, inverse, mu, shift, top, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr
) -> tuple:  # fmt: skip
    """2^-e C' and e, given 2^shift mu R in UNIT and mu: cotangents may be of any size, and float16 is not."""
    # mu R ends where V does: for float16 to hold what it is multiplied with.
    reduction = power_of_two(-floor_log2(2 + top))
    inverse *= reduction
    C = tl.zeros((N, N), tl.float32)
    exponent = 0
    if HAS_R:
        G, exponent = normalized(load_symmetric(GR, n, n, 1, 1.0, N))
        C -= _sandwich(inverse, G, reduction * mu)
        exponent -= 2 * shift
    if HAS_S:
        G = load_symmetric(GS, n, n, 1, 1.0, N)
        if HAS_R:
            G, other = normalized(G)
            C, exponent = add_scaled(C, exponent, G, other)
        else:
            C = G
    C, other = normalized(C)
    exponent += other
    C += _sandwich(inverse, C, reduction)
    if top > 2:
        C, other = normalized(C)
        exponent += other
    return C, exponent


@triton.jit
def solve_kernel(
    S, R, GS, GR, out, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    start = tl.program_id(0).to(tl.int64) * n * n
    V, inverse, mu, shift, zero = preconditioned_operator(S + start, R + start, n, N)
    top = tl.where(zero, 1.0, _spectral_bound(V, n))
    C, exponent = _right_side(GS + start, GR + start, n, inverse, mu, shift, top, HAS_S, HAS_R, N)
    X = refined_chebyshev(V, C, top, _tolerance(top))
    store_gradient(out + start, tl.where(zero, 0.0, X), exponent - shift, mu, ridge, n, N)
