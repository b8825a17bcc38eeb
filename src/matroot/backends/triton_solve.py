"""Gradients of roots on a GPU in one launch: one program per matrix, everything on chip.

With V = S/mu + mu R and C' = C + (mu R) C (mu R), the equation S X + X S = C is V X + X V = C'/mu, and V reaches
from 2 to not much more unless the matrix is ill-conditioned. Then Chebyshev's iteration takes a product a
step and few steps; else Smith's sum, by doubling. Import only where Triton is.
"""

import triton
import triton.language as tl

from .triton_kernels import FAST, _bound, _product, _total

EASY = tl.constexpr(0.25)
"""What a step of Chebyshev's iteration may leave of the error: from there on doubling takes fewer products."""


@triton.jit
def near_inverse(top):
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
def chebyshev(top):
    """Centre and half width of the spectrum of X -> V X + X V for V from 2 to 2 + ``top``, and what a step leaves."""
    centre = 4 + top
    ratio = centre / top
    return centre, top, ratio - tl.sqrt(ratio * ratio - 1)


@triton.jit
def _unit(x):
    """A power of two near the largest modulus, well within the range of float32."""
    size = tl.max(tl.max(tl.abs(x), 1), 0)
    return tl.exp2(tl.floor(tl.log2(tl.minimum(tl.maximum(size, 1e-36), 1e36))))


@triton.jit
def _symmetric(G, place, inside):
    G = tl.load(G + place, inside, 0.0)
    return 0.5 * (G + tl.trans(G))


@triton.jit
def _right_side(
    GS, GR, place, inside, inverse, mu, HAS_S: tl.constexpr, HAS_R: tl.constexpr, N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """C' and the unit it is in: half numbers have no room for any cotangent."""
    C = tl.zeros((N, N), tl.float32)
    if HAS_R:
        G = _symmetric(GR, place, inside)
        unit = _unit(G)
        C -= _product(_product(inverse, G / unit, PRECISION), inverse, PRECISION) * (unit / (mu * mu))
    if HAS_S:
        C += _symmetric(GS, place, inside)
    unit = _unit(C)
    C /= unit
    return C + _product(_product(inverse, C, PRECISION), inverse, PRECISION), unit


@triton.jit
def solve_kernel(
    S, R, GS, GR, out, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr,
    N: tl.constexpr, PRECISION: tl.constexpr, CHEAP: tl.constexpr,
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    matrix = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    place = matrix * n * n + row * n + column
    eye = tl.where((row == column) & inside, 1.0, 0.0)
    V = tl.load(S + place, inside, 0.0)
    inverse = tl.load(R + place, inside, 0.0)
    norm = _total(V * V)
    zero = norm == 0
    mu = tl.sqrt(tl.sqrt(norm) / tl.sqrt(_total(inverse * inverse)))
    mu = tl.where(zero, 1.0, mu)
    inverse *= mu
    V = V / mu + inverse

    V -= 2 * eye
    square = _product(V, V, FAST)
    top = tl.maximum(_bound(_total(V * V) / n, _total(square * square) / n, n), 0.01)
    top = tl.where(zero, 1.0, top)
    centre, width, rate = chebyshev(top)
    wanted = 1e-6
    if rate < EASY:
        C, unit = _right_side(GS, GR, place, inside, inverse, mu, HAS_S, HAS_R, N, FAST)
        X = C / centre
        move = X
        share = width / centre
        error = 2 * rate
        while error > wanted:
            W = _product(V, X, FAST)
            less = 1 / (2 * centre / width - share)
            move = less * share * move + (2 * less / width) * (C - 4 * X - (W + tl.trans(W)))
            X += move
            share = less
            error *= rate
    else:
        C, unit = _right_side(GS, GR, place, inside, inverse, mu, HAS_S, HAS_R, N, PRECISION)
        p, k0, k1, k2, error = near_inverse(top)
        K = k0 * eye + k1 * V + k2 * square
        V += (2 + p) * eye
        while error > wanted:
            K += _product(K, eye - _product(V, K, PRECISION), CHEAP)
            error *= error
        X = 2 * p * _product(_product(K, C, PRECISION), K, PRECISION)
        F = eye - 2 * p * K
        factor = (p - 2) / (p + 2)
        going = mu == mu
        while going:
            X += _product(_product(F, X, CHEAP), F, CHEAP)
            factor *= factor
            going = factor * factor > wanted
            if going:
                F = _product(F, F, CHEAP)
    X = (X + tl.trans(X)) * tl.where(zero, 0.0, 0.5 * (unit / mu))
    if ridge != 0:
        X += eye * (ridge / n) * _total(X * eye)
    tl.store(out + place, X, inside)
