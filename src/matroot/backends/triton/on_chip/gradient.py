"""Gradients of roots on a GPU in one launch: one program per matrix, everything on chip.

With V = S/mu + mu R and C' = C + (mu R) C (mu R), the equation S X + X S = C is V X + X V = C'/mu, and V reaches
from 2 to not much more unless the matrix is ill-conditioned. Then Chebyshev's iteration takes a product a step and few
steps; it is done twice in half precision, for X and for what that leaves. Else Smith's sum, by doubling. Import only
where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    FP16,
    FP16X3_TRANSPOSED,
    INTEGER_SPLIT,
    UNIT,
    eigenvalue_bound,
    matmul,
    split_fp16,
    total,
)
from .roots import _lanes

EASY = tl.constexpr(0.25)
"""What a step of Chebyshev's iteration may leave of the error: from there on doubling takes fewer products."""
RESIDUAL_SCALE = tl.constexpr(256.0)
"""What the second right side is multiplied by, for half numbers to hold it."""


@triton.jit
def initial_inverse(top):
    """Smith's p, then the quadratic of native/kernel.h nearest to (V + 2 + p)^-1 for V from 0 to ``top``: its
    coefficients, and how far from one it leaves their product."""
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
    """Centre and half width of the spectrum of X -> V X + X V for V from 2 to 2 + ``top``, and what a step leaves."""
    centre = 4 + top
    ratio = centre / top
    return centre, top, ratio - tl.sqrt(ratio * ratio - 1)


@triton.jit
def _unit(x):
    """A power of two, well within the range of float32, that leaves a largest modulus of 4 to 8."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    return tl.exp2(tl.floor(tl.log2(tl.minimum(tl.maximum(size, 1e-35), 1e36))) - 2)


@triton.jit
def _symmetric(G, place, inside):
    G = tl.load(G + place, inside, 0.0)
    return 0.5 * (G + tl.trans(G))


@triton.jit
def right_side(
    GS, GR, place, inside, inverse, mu, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """C', given mu R in UNIT, and the unit it is in: half numbers have no room for any cotangent."""
    C = tl.zeros((N, N), tl.float32)
    if HAS_R:
        G = _symmetric(GR, place, inside)
        unit = _unit(G)
        C -= matmul(matmul(inverse, G / unit, PRECISION), inverse, PRECISION) * (unit / (mu * mu) / (UNIT * UNIT))
    if HAS_S:
        C += _symmetric(GS, place, inside)
    unit = _unit(C)
    C /= unit
    return C + matmul(matmul(inverse, C, PRECISION), inverse, PRECISION) * (1 / (UNIT * UNIT)), unit


@triton.jit
def _roughly(V, C, top, wanted):
    """X with V X + X V = C to an error of ``wanted`` and half precision, given V less 2 I, which reaches ``top``."""
    centre, width, rate = chebyshev_interval(top)
    right = tl.trans(V).to(tl.float16)
    V = V.to(tl.float16)
    X = C / centre
    move = X
    share = width / centre
    error = 2 * rate
    while error > wanted:
        more = 1 / (2 * centre / width - share)
        turned = tl.dot(X.to(tl.float16), right, tl.dot(V, tl.trans(X).to(tl.float16)))
        move = more * share * move + (2 * more / width) * (C - 4 * X - turned)
        X += move
        share = more
        error *= rate
    return X


@triton.jit
def easily(V, C, top, wanted):
    """The same to an error of ``wanted`` squared: twice, the second time for what the first, rounded, leaves."""
    X = _roughly(V, C, top, wanted).to(tl.float16).to(tl.float32)
    high, low = split_fp16(V)
    right = tl.trans(X).to(tl.float16)
    W = tl.dot(high, right, tl.dot(low, right))
    return X + _roughly(V, (C - 4 * X - (W + tl.trans(W))) * RESIDUAL_SCALE, top, wanted) * (1 / RESIDUAL_SCALE)


@triton.jit
def balanced(S, R, place, inside, eye) -> tuple:
    """V less 2 I, mu R in UNIT, mu, and whether the root is zero."""
    V = tl.load(S + place, inside, 0.0)
    inverse = tl.load(R + place, inside, 0.0)
    norm = total(V * V)
    zero = norm == 0
    mu = tl.where(zero, 1.0, tl.sqrt(tl.sqrt(norm) / tl.sqrt(total(inverse * inverse))))
    inverse *= mu * UNIT
    return V / mu + inverse * (1 / UNIT) - 2 * eye, inverse, mu, zero


@triton.jit
def reach(V, n):
    """Bound of the largest eigenvalue of V; half precision will do for that."""
    square = matmul(V, V, FP16)
    return tl.maximum(1.001 * eigenvalue_bound(total(V * V) / n, total(square * square) / n, n), 0.01)


@triton.jit
def finished(X, unit, mu, eye, n, ridge):
    """The gradient, given X and its unit: with the ridge's share."""
    X = (X + tl.trans(X)) * (0.5 * (unit / mu))
    return X + eye * (ridge / n) * total(X * eye)


@triton.jit
def solve_kernel(
    S, R, GS, GR, out, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr, CHEAP: tl.constexpr
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    matrix = tl.program_id(0).to(tl.int64)
    row, column, inside, eye = _lanes(n, N)
    place = matrix * n * n + row * n + column
    V, inverse, mu, zero = balanced(S, R, place, inside, eye)
    top = tl.where(zero, 1.0, reach(V, n))
    _, _, rate = chebyshev_interval(top)
    if rate < EASY:
        C, unit = right_side(GS, GR, place, inside, inverse, mu, HAS_S, HAS_R, N, FP16X3_TRANSPOSED)
        X = easily(V, C, top, 1e-3)
    else:
        C, unit = right_side(GS, GR, place, inside, inverse, mu, HAS_S, HAS_R, N, INTEGER_SPLIT)
        wanted = 1e-6
        p, k0, k1, k2, error = initial_inverse(top)
        K = k0 * eye + k1 * V + k2 * matmul(V, V, FP16X3_TRANSPOSED)
        V += (2 + p) * eye
        while error > wanted:
            K += matmul(K, eye - matmul(V, K, INTEGER_SPLIT), CHEAP)
            error *= error
        X = 2 * p * matmul(matmul(K, C, INTEGER_SPLIT), K, INTEGER_SPLIT)
        F = eye - 2 * p * K
        factor = (p - 2) / (p + 2)
        going = mu == mu
        while going:
            X += matmul(matmul(F, X, CHEAP), F, CHEAP)
            factor *= factor
            going = factor * factor > wanted
            if going:
                F = matmul(F, F, CHEAP)
    X = finished(X, unit, mu, eye, n, ridge)
    tl.store(out + place, tl.where(zero, 0.0, X), inside)
