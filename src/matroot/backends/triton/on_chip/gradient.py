"""Gradients of roots on a GPU in one launch: one program per matrix, everything on chip.

With V = S/mu + mu R and C' = C + (mu R) C (mu R), the equation S X + X S = C is V X + X V = C'/mu. The spectrum of V
begins at 2 and ends near the fourth root of the condition number. Chebyshev's iteration takes few steps where that is
small, some dozens where matrices are as ill-conditioned as float32 allows. It runs in half precision for X, and once
more for the residual, which is computed in float32: R alone costs ill-conditioned gradients more digits than that.

Sizes are kept as exponents beside numbers of moderate size, so that no intermediate result leaves the range of float32
where the gradient does not. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    FP16,
    FP16X3_TRANSPOSED,
    UNIT,
    eigenvalue_bound,
    matmul,
    split_fp16,
    sum_of_squares,
    total,
)
from ..scaling import (
    add_scaled,
    floor_log2,
    load_symmetric,
    matrix_lanes,
    max_abs,
    normalized,
    power_of_two,
    times_power_of_two,
)

RESIDUAL_SCALE = tl.constexpr(256.0)
"""What the second right-hand side is multiplied by, for float16 to hold it."""
MAX_TOP = tl.constexpr(700.0)
"""V - 2 I ends below for all roots that the kernel returns; for any other input it bounds the number of steps."""
MODERATE = tl.constexpr(2.0**80)
"""Sums of squares between 1/MODERATE and this have lost nothing to the ends of the range."""


@triton.jit
def initial_inverse(top):
    """Smith's p, then the quadratic of cpu/kernel.h nearest to (V + 2 + p)^-1 for V from 0 to ``top``: its
    coefficients, and the largest distance of their product from one."""
    p = tl.sqrt(2 * (top + 2))
    h = 0.5 * top
    least = 2 + p
    z = (least + h) / h
    unit = 1 / (h * z * (4 * z * z - 3))
    k1 = -12 * z * unit / h
    k2 = 4 * unit / (h * h)
    k0 = (12 * z * z - 3) * unit + least * (k1 + least * k2)
    return p, k0, k1 + 2 * least * k2, k2, h * unit


@triton.jit
def chebyshev_interval(top):
    """Centre and half width of the spectrum of X -> V X + X V for V from 2 to 2 + ``top``, and the factor by
    which a step reduces the error."""
    centre = 4 + top
    ratio = centre / top
    return centre, top, ratio - tl.sqrt(ratio * ratio - 1)


@triton.jit
def _sandwich(inverse, C, unit):
    """(mu R) C (mu R), given mu R in this unit."""
    return matmul(matmul(inverse, C, FP16X3_TRANSPOSED), inverse, FP16X3_TRANSPOSED) * (1 / (unit * unit))


@triton.jit
def right_side(
    GS, GR, n, inverse, mu, shift, unit, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr,
) -> tuple:  # fmt: skip
    """2^-e C' and e, given 2^shift mu R in ``unit``, and mu: cotangents may be of any size, and float16 is not."""
    C = tl.zeros((N, N), tl.float32)
    exponent = 0
    if HAS_R:
        G, exponent = normalized(load_symmetric(GR, n, n, 1, 1.0, N))
        C -= _sandwich(inverse, G, mu * unit)
        exponent -= 2 * shift
    if HAS_S:
        G = load_symmetric(GS, n, n, 1, 1.0, N)
        if HAS_R:
            G, other = normalized(G)
            C, exponent = add_scaled(C, exponent, G, other)
        else:
            C = G
    C, other = normalized(C)
    return C + _sandwich(inverse, C, unit), exponent + other


@triton.jit
def _chebyshev_fp16(V, C, top, tolerance):
    """X with V X + X V = C to an error of ``tolerance`` and half precision, given V - 2 I with spectrum up to
    ``top``."""
    centre, width, rate = chebyshev_interval(top)
    right = tl.trans(V).to(tl.float16)
    V = V.to(tl.float16)
    X = C / centre
    step = X
    ratio = width / centre
    error = 2 * rate
    while error > tolerance:
        next_ratio = 1 / (2 * centre / width - ratio)
        image = tl.dot(X.to(tl.float16), right, tl.dot(V, tl.trans(X).to(tl.float16)))
        step = next_ratio * ratio * step + (2 * next_ratio / width) * (C - 4 * X - image)
        X += step
        ratio = next_ratio
        error *= rate
    return X


@triton.jit
def refined_chebyshev(V, C, top, tolerance):
    """The same to an error of ``tolerance`` squared: for C, and for the residual of that solution in float16."""
    X = _chebyshev_fp16(V, C, top, tolerance).to(tl.float16).to(tl.float32)
    high, low = split_fp16(V)
    right = tl.trans(X).to(tl.float16)
    W = tl.dot(high, right, tl.dot(low, right))
    residual = (C - 4 * X - (W + tl.trans(W))) * RESIDUAL_SCALE
    return X + _chebyshev_fp16(V, residual, top, tolerance) * (1 / RESIDUAL_SCALE)


@triton.jit
def preconditioned_operator(S, R, n, N: tl.constexpr) -> tuple:
    """V - 2 I, then 2^shift mu R in UNIT, mu and shift for S/2^shift, and whether the root is zero."""
    row, column, inside, eye = matrix_lanes(n, N)
    V = tl.load(S + row * n + column, inside, 0.0)
    inverse = tl.load(R + row * n + column, inside, 0.0)
    norm = sum_of_squares(V)
    inverse_norm = sum_of_squares(inverse)
    shift = 0
    if (tl.minimum(norm, inverse_norm) < 1 / MODERATE) | (tl.maximum(norm, inverse_norm) > MODERATE):
        shift = floor_log2(max_abs(V))
        V *= power_of_two(-shift)
        inverse *= power_of_two(shift)
        norm = sum_of_squares(V)
        inverse_norm = sum_of_squares(inverse)
    zero = norm == 0
    mu = tl.where(zero, 1.0, tl.sqrt(tl.sqrt(norm) / tl.sqrt(inverse_norm)))
    inverse *= mu * UNIT
    return V / mu + inverse * (1 / UNIT) - 2 * eye, inverse, mu, shift, zero


@triton.jit
def spectral_bound(V, n):
    """Bound of the largest eigenvalue of V; half precision is enough for that."""
    square = matmul(V, V, FP16)
    return tl.maximum(1.001 * eigenvalue_bound(sum_of_squares(V) / n, total(square * square) / n, n), 0.01)


@triton.jit
def store_gradient(out, X, exponent, mu, ridge, n, N: tl.constexpr):
    """Write 2^exponent X/mu, symmetric, with the ridge's share."""
    row, column, inside, eye = matrix_lanes(n, N)
    X = (X + tl.trans(X)) * (0.5 / mu)
    X += eye * (ridge / n) * total(X * eye)
    tl.store(out + row * n + column, times_power_of_two(X, exponent), inside)


@triton.jit
def _tolerance(top):
    """Error of one run of the iteration. R costs gradients its own error, which grows with the condition number."""
    return tl.minimum(tl.maximum(8e-6 * top * top, 1e-3), 2e-2)


@triton.jit
def solve_kernel(
    S, R, GS, GR, out, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    start = tl.program_id(0).to(tl.int64) * n * n
    V, inverse, mu, shift, zero = preconditioned_operator(S + start, R + start, n, N)
    top = tl.where(zero, 1.0, tl.minimum(spectral_bound(V, n), MAX_TOP))
    # mu R ends where V does: reduced, for float16 to hold what it is multiplied with.
    reduction = power_of_two(-floor_log2(2 + top))
    inverse *= reduction
    C, exponent = right_side(GS + start, GR + start, n, inverse, mu, shift, reduction * UNIT, HAS_S, HAS_R, N)
    if top > 2:
        C, other = normalized(C)
        exponent += other
    X = refined_chebyshev(V, C, top, _tolerance(top))
    store_gradient(out + start, tl.where(zero, 0.0, X), exponent - shift, mu, ridge, n, N)
