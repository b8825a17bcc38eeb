"""Roots on a GPU in one launch: one program per matrix, everything on chip.

The same algorithm as the compiled code's. Cleaning, scaling, ridge, definiteness, stopping and restoring happen inside
the program; the host decides nothing. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    FAST_STEPS_OFFSET,
    FOURTH,
    FP16,
    FP16X3,
    FP16X3_TRANSPOSED,
    INTEGER_SPLIT,
    STEPS,
    TAYLOR_THRESHOLD,
    UNIT,
    centred_eigenvalue_bound,
    choose_schedule,
    eigenvalue_bound,
    matmul,
    suits_fast_path,
    sum_of_squares,
    total,
)
from ..scaling import identity, load_scaled, matrix_lanes, power_of_two


@triton.jit
def _first_step(X, square, eye, theta, steps, unit, PRECISION: tl.constexpr):
    """Y and Z times ``unit`` after the first step of a schedule for eigenvalues up to theta, given X and its square."""
    inverse = 1.0 / theta
    root = unit * tl.sqrt(inverse)
    Z = (
        tl.load(steps) * root * eye
        + tl.load(steps + 1) * root * inverse * X
        + tl.load(steps + 2) * root * inverse * inverse * square
    )
    return matmul(X, Z, PRECISION), Z


@triton.jit
def _later_step(Y, Z, M, eye, c, PRECISION: tl.constexpr):
    """Y and Z after a step with five coefficients, M = Z Y."""
    square = matmul(M, M, PRECISION)
    T = tl.load(c + 4) * square + tl.load(c + 3) * M + tl.load(c + 2) * eye
    T = matmul(T, square, PRECISION) + tl.load(c + 1) * M + tl.load(c) * eye
    return matmul(Y, T, PRECISION), matmul(T, Z, PRECISION)


@triton.jit
def _last_step(Y, Z, E, square, PRECISION: tl.constexpr):
    """Taylor's step, as a correction: M^(-1/2) - I in powers of E = I - M."""
    T = 0.5 * E + 0.375 * square
    T += matmul(square, 0.3125 * E + 0.2734375 * square, PRECISION)
    return Y + matmul(Y, T, PRECISION), Z + matmul(T, Z, PRECISION)


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
def fast_roots(X, eye, m1, m2, n, table):
    """Roots Y and Z in UNIT after three steps or four, and whether they converged.

    After two steps the sum of the fourth powers of the eigenvalues of E = I - M bounds the largest: by 0.09 if three
    steps are enough, by 0.6 if four may be. The last step's terms in E^3 and E^4, 2e-4 at most, may be in FP16.
    """
    steps = table + FAST_STEPS_OFFSET
    square = matmul(X, X, FP16X3_TRANSPOSED)
    theta = 1.02 * centred_eigenvalue_bound(m1, m2, total(X * square) / n, total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, UNIT, FP16X3_TRANSPOSED)
    E, square = _residual(Y, Z, eye)
    Y, Z = _correction_step(Y, Z, E, square, eye, steps + 5, FP16X3_TRANSPOSED)
    E, square = _residual(Y, Z, eye)
    fourth = total(square * square) * FOURTH
    if (fourth >= TAYLOR_THRESHOLD * TAYLOR_THRESHOLD) & (fourth < 0.13):
        Y, Z = _correction_step(Y, Z, E, square, eye, steps + 10, FP16X3_TRANSPOSED)
        E, square = _residual(Y, Z, eye)
        fourth = total(square * square) * FOURTH
    Y, Z = _correction_step(Y, Z, E, square, eye, steps + 10, FP16)
    return Y, Z, fourth < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD


@triton.jit
def _robust_roots(X, eye, n, steps, schedule, first, CORRECTION_PRECISION: tl.constexpr):
    """Roots Y and Z of any X, whether they converged, and a bound of the largest eigenvalue."""
    square = matmul(X, X, INTEGER_SPLIT)
    theta = 1.02 * eigenvalue_bound(sum_of_squares(X) / n, total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, 1.0, INTEGER_SPLIT)
    step = 1
    converged = theta < 0
    running = theta == theta
    while running:
        M = matmul(Z, Y, INTEGER_SPLIT)
        E = eye - M
        residual = sum_of_squares(E)
        converged = residual < TAYLOR_THRESHOLD
        if converged:
            Y, Z = _last_step(Y, Z, E, matmul(E, E, CORRECTION_PRECISION), CORRECTION_PRECISION)
        else:
            Y, Z = _later_step(Y, Z, M, eye, steps + tl.minimum(step, STEPS - 1) * 5, INTEGER_SPLIT)
            # Rounding grows in ill-conditioned matrices where Y and Z are not symmetric.
            Y = 0.5 * (Y + tl.trans(Y))
            Z = 0.5 * (Z + tl.trans(Z))
        step += 1
        # Steps beyond the longest schedule enlarge a small eigenvalue by 2.46 each: one that is still small then is
        # zero to rounding.
        max_steps = tl.where((schedule == 2) & first & (residual > 0.5), 7, 12)
        running = (not converged) & (residual < 1e6) & (step < max_steps)
    return Y, Z, converged, theta


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
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, max_shift,
    N: tl.constexpr, CORRECTION_PRECISION: tl.constexpr,
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype.

    ``table`` holds three schedules of STEPS steps of five coefficients, then the steps of the fast path; ``max_shift``
    is the last shift to try on a matrix that is not positive, relative to a bound of its largest eigenvalue.
    """
    matrix = tl.program_id(0).to(tl.int64)
    eye = identity(n, N)
    A += matrix * stride_batch
    S += matrix * n * n
    R += matrix * n * n
    X, trace, exponent, size = load_with_ridge(A, n, stride_row, stride_column, ridge, N)
    m1, m2 = trace / n, sum_of_squares(X) / n
    schedule = choose_schedule(m1, m2)
    converged = m2 < 0
    if suits_fast_path(m1, m2, n):
        Y, Z, converged = fast_roots(X, eye, m1, m2, n, table)
        if converged:
            store_roots(S, R, Y, Z, UNIT, exponent, size, converged, n, N)
    if not converged:
        # Read once more: the fast path needs the registers that would keep it.
        X, trace, exponent, size = load_with_ridge(A, n, stride_row, stride_column, ridge, N)
        Y, Z = eye, eye
        attempt = 0
        shift = 0.0 * max_shift
        while (attempt < 4) & (not converged):
            schedule = tl.where(attempt > 0, 2, schedule)
            steps = table + schedule * (STEPS * 5)
            Y, Z, converged, theta = _robust_roots(X, eye, n, steps, schedule, attempt == 0, CORRECTION_PRECISION)
            if not converged:
                # Singular, negative by rounding, or indefinite.
                wider = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, max_shift))
                X += (wider - shift) * theta * eye
                shift = wider
                attempt += 1
        store_roots(S, R, Y, Z, 1.0, exponent, size, converged, n, N)
