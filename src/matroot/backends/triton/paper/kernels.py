"""Taylor, Pade and Newton-Schulz roots and the Lyapunov gradient on a GPU: one launch each, one program per matrix.

Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import matmul, total
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
from .clean import clean, frobenius, negative_inverse_by_sweep, restore, symmetric


@triton.jit
def _polynomial(X, square, cube, eye, table, blocks, PRECISION: tl.constexpr):
    """The polynomial with 3 blocks + 1 coefficients in ``table``: Horner's scheme in the cube."""
    c = table + 3 * (blocks - 1)
    total = tl.load(c) * eye + tl.load(c + 1) * X + tl.load(c + 2) * square + tl.load(c + 3) * cube
    for _ in range(blocks - 1):
        c -= 3
        total = matmul(total, cube, PRECISION)
        total += tl.load(c) * eye + tl.load(c + 1) * X + tl.load(c + 2) * square
    return total


# Neither strides nor counts are worth compiling again for.
_UNSPECIALIZED = ["n", "stride_batch", "stride_row", "stride_column"]


@triton.jit(do_not_specialize=[*_UNSPECIALIZED, "blocks"])
def taylor_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, blocks,
    SQRT: tl.constexpr, INVERSE: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The polynomials of ``Taylor``, that of the root first in ``table``."""
    X, eye, root_scale, inverse_scale, nan_mask = clean(
        A, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, N, PRECISION
    )
    norm = frobenius(X)
    X = eye - X / norm
    square = matmul(X, X, PRECISION)
    cube = matmul(square, X, PRECISION)
    scale = tl.sqrt(norm)
    if SQRT:
        root = _polynomial(X, square, cube, eye, table, blocks, PRECISION)
        restore(S, root, scale * root_scale, nan_mask, n, N)
    if INVERSE:
        root = _polynomial(X, square, cube, eye, table + 3 * blocks + 1, blocks, PRECISION)
        restore(R, root, inverse_scale / scale, nan_mask, n, N)


@triton.jit(do_not_specialize=[*_UNSPECIALIZED, "blocks"])
def pade_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, blocks,
    SQRT: tl.constexpr, INVERSE: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``Pade`` by polynomials, the numerator first in ``table``."""
    X, eye, root_scale, inverse_scale, nan_mask = clean(
        A, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, N, PRECISION
    )
    norm = frobenius(X)
    X = X / norm
    square = matmul(X, X, PRECISION)
    cube = matmul(square, X, PRECISION)
    P = _polynomial(X, square, cube, eye, table, blocks, PRECISION)
    Q = _polynomial(X, square, cube, eye, table + 3 * blocks + 1, blocks, PRECISION)
    P = symmetric(P)
    Q = symmetric(Q)
    scale = tl.sqrt(norm)
    if SQRT:
        inverse, _ = negative_inverse_by_sweep(Q, n, N)
        restore(S, matmul(inverse, P, PRECISION), -scale * root_scale, nan_mask, n, N)
    if INVERSE:
        inverse, _ = negative_inverse_by_sweep(P, n, N)
        restore(R, matmul(inverse, Q, PRECISION), -inverse_scale / scale, nan_mask, n, N)


@triton.jit
def _fractions(X, eye, table, degree, n, N: tl.constexpr):
    """Minus the sum of 2 (1 + t) (X + t)^-1 over the t in ``table``."""
    total = tl.zeros((N, N), tl.float32)
    for k in range(degree):
        t = tl.load(table + k)
        inverse, _ = negative_inverse_by_sweep(X + t * eye, n, N)
        total += 2 * (1 + t) * inverse
    return total


@triton.jit(do_not_specialize=[*_UNSPECIALIZED, "degree"])
def fractions_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, degree,
    SQRT: tl.constexpr, INVERSE: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``Pade`` by partial fractions, the poles of the root first in ``table``."""
    X, eye, root_scale, inverse_scale, nan_mask = clean(
        A, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, N, PRECISION
    )
    norm = frobenius(X)
    X = X / norm
    scale = tl.sqrt(norm)
    m = 2.0 * degree + 1
    if SQRT:
        root = eye - matmul(_fractions(X, eye, table, degree, n, N), X, PRECISION)
        restore(S, root, scale * root_scale / m, nan_mask, n, N)
    if INVERSE:
        root = eye - _fractions(X, eye, table + degree, degree, n, N)
        restore(R, root, inverse_scale / (scale * m), nan_mask, n, N)


@triton.jit(do_not_specialize=[*_UNSPECIALIZED, "iterations"])
def newton_schulz_kernel(
    A, S, R, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, iterations,
    SINGLE: tl.constexpr, TRACE: tl.constexpr,
    SQRT: tl.constexpr, INVERSE: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``NewtonSchulz``: one variable or two, divided by the trace or the Frobenius norm."""
    X, eye, root_scale, inverse_scale, nan_mask = clean(
        A, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance, N, PRECISION
    )
    norm = total(X * eye) if TRACE else frobenius(X)
    X = X / norm
    scale = tl.sqrt(norm)
    T = 1.5 * eye - 0.5 * X
    if SINGLE:
        Z = tl.where(iterations > 1, T, eye)
        for _ in range(iterations - 2):
            W = matmul(Z, X, PRECISION)
            Z = 1.5 * Z - 0.5 * matmul(matmul(Z, Z, PRECISION), W, PRECISION)
        # The last step in terms of W = Z X: W^2 Z = Z^3 X^2 gives the root, Z^2 W the inverse root.
        W = matmul(Z, X, PRECISION)
        if SQRT:
            root = 1.5 * W - 0.5 * matmul(matmul(W, W, PRECISION), Z, PRECISION)
            restore(S, root, scale * root_scale, nan_mask, n, N)
        if INVERSE:
            root = 1.5 * Z - 0.5 * matmul(matmul(Z, Z, PRECISION), W, PRECISION)
            restore(R, root, inverse_scale / scale, nan_mask, n, N)
    else:
        Y = X
        Z = eye
        for step in range(iterations - 1):
            Y = matmul(Y, T, PRECISION)
            if step > 0:
                T = matmul(T, Z, PRECISION)
            Z = T
            T = 1.5 * eye - 0.5 * matmul(Z, Y, PRECISION)
        if SQRT:
            restore(S, matmul(Y, T, PRECISION), scale * root_scale, nan_mask, n, N)
        if INVERSE:
            restore(R, matmul(T, Z, PRECISION), inverse_scale / scale, nan_mask, n, N)


@triton.jit(
    do_not_specialize=["n", "iterations"]
    + [f"{kind}_{step}" for kind in ("sqrt", "inverse") for step in ("batch", "row", "column")]
)
def lyapunov_kernel(
    S, R, GS, GR, out, n, sqrt_batch, sqrt_row, sqrt_column, inverse_batch, inverse_row, inverse_column, ridge,
    tolerance, iterations, ALONE: tl.constexpr, HAS_S: tl.constexpr, HAS_R: tl.constexpr, INPUT_NORM: tl.constexpr,
    N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """X with S X + X S = GS - R GR R, or R X + X R = -R^2 GR R^2 where R is ALONE, then the ridge's share of it.

    S and R are float32 (k, n, n), contiguous; the steps are those of ``gradients.Lyapunov``, no fewer for a
    negative tolerance.
    """
    matrix = tl.program_id(0).to(tl.int64)
    row, column, inside, eye = matrix_lanes(n, N)
    place = matrix * n * n + row * n + column
    B = tl.load((R if ALONE else S) + place, inside, 0.0)
    zero = tl.max(tl.max(tl.where(B == 0, 0, 1), 1), 0) == 0  # the largest of NaN may be none
    # B = 2^shift times a matrix of moderate size, the right-hand side is 2^exponent C.
    shift = floor_log2(max_abs(B))
    B = tl.where(zero, eye, B * power_of_two(-shift))
    square = matmul(B, B, PRECISION)
    C = tl.zeros((N, N), tl.float32)
    exponent = 0
    if HAS_R:
        GR += matrix * inverse_batch
        G, exponent = normalized(load_symmetric(GR, n, inverse_row, inverse_column, 1.0, N))
        if ALONE:
            outer = square
            exponent += 4 * shift
        else:
            outer = tl.load(R + place, inside, 0.0) * power_of_two(shift)
            exponent -= 2 * shift
        C = -symmetric(matmul(matmul(outer, G, PRECISION), outer, PRECISION))
    if HAS_S:
        GS += matrix * sqrt_batch
        G, other = normalized(load_symmetric(GS, n, sqrt_row, sqrt_column, 1.0, N))
        if HAS_R:
            C, exponent = add_scaled(C, exponent, G, other)
        else:
            C, exponent = G, other

    nu = tl.sqrt(frobenius(square)) if INPUT_NORM else frobenius(B)
    B = B / nu
    square = square / (nu * nu)
    C = C / nu
    step = 0
    running = iterations > 0
    while running:
        if step > 0:
            B = 1.5 * B - 0.5 * matmul(B, square, PRECISION)
            if step < iterations - 1:
                square = matmul(B, B, PRECISION)
        if tolerance >= 0:
            running = frobenius(B - eye) >= tolerance
        if running:
            W = matmul(B, C, PRECISION)
            C = 1.5 * C - symmetric(matmul(B, W - 0.5 * tl.trans(W), PRECISION))
        step += 1
        running = running & (step < iterations)

    X = tl.where(zero, 0.0, 0.5) * C
    X += eye * (ridge / n) * total(X * eye)
    tl.store(out + place, times_power_of_two(X, exponent - shift), inside)
