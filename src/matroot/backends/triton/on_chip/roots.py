"""Roots on a GPU in one launch: one program per matrix, everything on chip.

Cleaning, scaling, ridge, definiteness, stopping and restoring happen inside the program; the host decides nothing. Up
to n = 64 one kernel takes all matrices. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    FOURTH,
    FP16,
    FP16X3,
    FP16X3_TRANSPOSED,
    TAYLOR_THRESHOLD,
    UNIT,
    centred_eigenvalue_bound,
    matmul,
    suits_fast_path,
    sum_of_squares,
    total,
)
from ..scaling import identity, load_scaled, matrix_lanes, power_of_two
from .coupled import COLUMNS, NARROW, TAYLOR, coupled_iteration

ATTEMPTS = tl.constexpr(4)


@triton.jit
def _first_step(X, square, eye, theta, steps):
    """Y and Z in UNIT after the first step of a schedule for eigenvalues up to theta, given X and its square."""
    inverse = 1.0 / theta
    root = UNIT * tl.sqrt(inverse)
    Z = (
        tl.load(steps) * root * eye
        + tl.load(steps + 1) * root * inverse * X
        + tl.load(steps + 2) * root * inverse * inverse * square
    )
    return matmul(X, Z, FP16X3_TRANSPOSED), Z


@triton.jit
def _residual(Y, Z, eye):
    """E = I - Z Y in UNIT, and its square in UNIT^2; Y and Z are in UNIT."""
    E = eye * UNIT - matmul(Z, Y, FP16X3) * (1 / UNIT)
    return E, matmul(E, E, FP16X3_TRANSPOSED)


@triton.jit
def _correction_step(Y, Z, E, square, eye, c, PRECISION: tl.constexpr):
    """Y and Z after a step given by a correction in powers of E, the third and fourth power in this precision."""
    T = (tl.load(c) * UNIT) * eye + tl.load(c + 1) * E + (tl.load(c + 2) / UNIT) * square
    rest = tl.load(c + 3) * E + (tl.load(c + 4) / UNIT) * square
    T += matmul(square, rest, PRECISION) * (1 / (UNIT * UNIT))
    return Y + matmul(Y, T, FP16X3) * (1 / UNIT), Z + matmul(T, Z, FP16X3_TRANSPOSED) * (1 / UNIT)


@triton.jit
def _fast_roots(X, eye, m1, m2, n, first, second, taylor):
    """Roots Y and Z in UNIT after three steps or four, and whether they converged.

    After two steps the sum of the fourth powers of the eigenvalues of E = I - M bounds the largest: by 0.09 if three
    steps are enough, by 0.6 if four may be. The last step's terms in E^3 and E^4, 2e-4 at most, may be in FP16.
    """
    square = matmul(X, X, FP16X3_TRANSPOSED)
    theta = 1.02 * centred_eigenvalue_bound(m1, m2, total(X * square) / n, total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, first)
    E, square = _residual(Y, Z, eye)
    Y, Z = _correction_step(Y, Z, E, square, eye, second, FP16X3_TRANSPOSED)
    E, square = _residual(Y, Z, eye)
    fourth = total(square * square) * FOURTH
    if (fourth >= TAYLOR_THRESHOLD * TAYLOR_THRESHOLD) & (fourth < 0.13):
        Y, Z = _correction_step(Y, Z, E, square, eye, taylor, FP16X3_TRANSPOSED)
        E, square = _residual(Y, Z, eye)
        fourth = total(square * square) * FOURTH
    Y, Z = _correction_step(Y, Z, E, square, eye, taylor, FP16)
    return Y, Z, fourth < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD


@triton.jit
def load_with_ridge(source, n, stride_row, stride_column, ridge, N: tl.constexpr) -> tuple:
    """What ``load_scaled`` returns, the matrix with the ridge; and its trace."""
    X, exponent, size = load_scaled(source, n, stride_row, stride_column, False, N)
    eye = identity(n, N)
    trace = total(tl.where(eye > 0, X, 0.0))
    return X + eye * (ridge / n) * trace, trace + ridge * trace, exponent, size


@triton.jit
def store_roots(S, R, Y, Z, unit, exponent, size, converged, n, N: tl.constexpr):
    """Roots from those of the scaled matrix in this unit: zero if its size was zero, NaN if not finite, or if they did
    not converge."""
    row, column, inside, _ = matrix_lanes(n, N)
    nan_mask = tl.where((size < float("inf")) & (converged | (size == 0)), 0.0, float("nan"))
    scale = 0.5 * tl.where((exponent & 1) == 1, 1.4142135623730951, 1.0) * power_of_two(exponent >> 1)
    keep = tl.where(size > 0, 1 / unit, 0.0)
    target = row * n + column
    tl.store(S + target, keep * scale * (Y + tl.trans(Y)) + nan_mask, inside)
    tl.store(R + target, keep * (0.25 / scale) * (Z + tl.trans(Z)) + nan_mask, inside)


@triton.jit
def roots_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, max_shift, N: tl.constexpr
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype.

    ``max_shift`` is the last shift to try on a matrix that is not positive, relative to a bound of its largest
    eigenvalue. The root of a shifted matrix X + sigma I is taken to be Y - sigma Z, zero for a zero eigenvalue of X.
    """
    matrix = tl.program_id(0).to(tl.int64)
    A += matrix * stride_batch
    S += matrix * n * n
    R += matrix * n * n
    sigma = 0.0 * max_shift
    attempt = 0
    running = max_shift == max_shift
    if N == 16:  # the loop below takes no more products, but a third more instructions, which counts here
        eye = identity(n, N)
        X, trace, exponent, size = load_with_ridge(A, n, stride_row, stride_column, ridge, N)
        m1, m2 = trace / n, sum_of_squares(X) / n
        if suits_fast_path(m1, m2, n):
            narrow, taylor = table + (1 + NARROW) * COLUMNS, table + (1 + TAYLOR) * COLUMNS
            Y, Z, found = _fast_roots(X, eye, m1, m2, n, table, narrow, taylor)
            if found:
                store_roots(S, R, Y, Z, UNIT, exponent, size, found, n, N)
            running = not found
    while running:
        # n and the stride, plus zero, which the compiler does not know: it would keep addresses and masks in registers
        # from one attempt to the next.
        zero = 16 * (sigma < 0).to(tl.int32)
        m = n + zero
        eye = identity(m, N)
        X, trace, exponent, size = load_with_ridge(A, m, zero.to(tl.int64) + stride_row, stride_column, ridge, N)
        X += sigma * eye
        Y, Z, found, theta = coupled_iteration(X, eye, trace / n + sigma, sum_of_squares(X) / n, n, table)
        # Stored in each attempt: nothing is kept for the next one, which is rare.
        store_roots(S, R, Y - sigma * Z, Z, UNIT, exponent, size, found, m, N)
        attempt += 1
        # Negative by rounding, or indefinite.
        sigma = tl.where(attempt == 1, 4.8e-7, tl.where(attempt == 2, 4.8e-7 * n, max_shift)) * theta
        running = (attempt < ATTEMPTS) & (not found)
