"""Roots on a GPU in one launch: one program per matrix, everything on chip.

The program does what the compiled code does, and nothing is left to the host: cleaning, scaling, ridge, definiteness,
stopping and restoring happen inside. Import only where Triton is.
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
    total,
)


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
def _gap(Y, Z, eye):
    """E = I - Z Y and its square, all in UNIT, but the square in the square of that."""
    E = eye * UNIT - matmul(Z, Y, FP16X3) * (1 / UNIT)
    return E, matmul(E, E, FP16X3_TRANSPOSED)


@triton.jit
def _corrected(Y, Z, E, square, eye, c, PRECISION: tl.constexpr):
    """Y and Z after a step given by a correction in powers of E; of the third and fourth power with this precision."""
    T = (tl.load(c) * UNIT) * eye + tl.load(c + 1) * E + (tl.load(c + 2) / UNIT) * square
    rest = tl.load(c + 3) * E + (tl.load(c + 4) / UNIT) * square
    T += matmul(square, rest, PRECISION) * (1 / (UNIT * UNIT))
    return Y + matmul(Y, T, FP16X3) * (1 / UNIT), Z + matmul(T, Z, FP16X3_TRANSPOSED) * (1 / UNIT)


@triton.jit
def _easy(X, eye, m1, m2, n, table):
    """Roots Y and Z of a matrix that looks easy, in UNIT, in three steps or four, and whether it was.

    The sum of fourth powers of what the first two leave of I - M bounds the largest: by 0.09 if three steps are enough,
    by 0.6 if four may be. What the last step makes of its cube, 2e-4 at most, may be rough.
    """
    steps = table + FAST_STEPS_OFFSET
    square = matmul(X, X, FP16X3_TRANSPOSED)
    theta = 1.02 * centred_eigenvalue_bound(m1, m2, total(X * square) / n, total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, UNIT, FP16X3_TRANSPOSED)
    E, square = _gap(Y, Z, eye)
    Y, Z = _corrected(Y, Z, E, square, eye, steps + 5, FP16X3_TRANSPOSED)
    E, square = _gap(Y, Z, eye)
    fourth = total(square * square) * FOURTH
    if (fourth >= TAYLOR_THRESHOLD * TAYLOR_THRESHOLD) & (fourth < 0.13):
        Y, Z = _corrected(Y, Z, E, square, eye, steps + 10, FP16X3_TRANSPOSED)
        E, square = _gap(Y, Z, eye)
        fourth = total(square * square) * FOURTH
    Y, Z = _corrected(Y, Z, E, square, eye, steps + 10, FP16)
    return Y, Z, fourth < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD


@triton.jit
def _careful(X, eye, n, steps, schedule, first, CHEAP: tl.constexpr):
    """Roots Y and Z of any X, whether they converged, and a bound of the largest eigenvalue."""
    square = matmul(X, X, INTEGER_SPLIT)
    theta = 1.02 * eigenvalue_bound(total(X * X) / n, total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, 1.0, INTEGER_SPLIT)
    step = 1
    done = theta < 0
    going = theta == theta
    while going:
        M = matmul(Z, Y, INTEGER_SPLIT)
        E = eye - M
        gap = total(E * E)
        done = gap < TAYLOR_THRESHOLD
        if done:
            Y, Z = _last_step(Y, Z, E, matmul(E, E, CHEAP), CHEAP)
        else:
            Y, Z = _later_step(Y, Z, M, eye, steps + tl.minimum(step, STEPS - 1) * 5, INTEGER_SPLIT)
            # Rounding grows in ill-conditioned matrices where Y and Z are not symmetric.
            Y = 0.5 * (Y + tl.trans(Y))
            Z = 0.5 * (Z + tl.trans(Z))
        step += 1
        # Steps beyond the longest schedule enlarge a small singular value by 2.46 each: what is left far behind
        # then is as good as singular.
        going = (not done) & (step < tl.where((schedule == 2) & first & (gap > 0.5), 7, 12)) & (gap < 1e6)
    return Y, Z, done, theta


@triton.jit
def _scaled(source, n, stride_row, stride_column, ridge, N: tl.constexpr) -> tuple:
    """Twice the symmetric part of a matrix, divided by a power of two so that none of its powers leaves the range of
    float32, with the ridge; its trace, the exponent of that power, and the mean modulus before.

    A mean modulus will do: the largest is no more than n^2 times that, and NaN and Inf show in it. In place of what is
    zero or not finite stands the identity.
    """
    row, column, inside, eye = _lanes(n, N)
    X = tl.load(source + row * stride_row + column * stride_column, inside, 0.0).to(tl.float32)
    X += tl.trans(X)
    size = total(tl.abs(X) * (1.0 / (N * N)))
    exponent = tl.floor(tl.log2(tl.maximum(size, 1e-37)))
    half = tl.floor(0.5 * exponent)
    usable = (size > 0) & (size - size == 0)
    X = tl.where(usable, X * tl.exp2(-half) * tl.exp2(half - exponent), eye)
    trace = total(X * eye)
    return X + eye * (ridge / n) * trace, trace + ridge * trace, exponent, size


@triton.jit
def _lanes(n, N: tl.constexpr) -> tuple:
    """Rows and columns, which entries belong to the matrix, and the identity."""
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    return row, column, inside, tl.where((row == column) & inside, 1.0, 0.0)


@triton.jit
def _deliver(S, R, Y, Z, unit, exponent, size, good, n, N: tl.constexpr):
    """Roots from those of the scaled matrix in this unit: zero if its size was zero, NaN if not finite, or if they are
    no good."""
    row, column, inside, _ = _lanes(n, N)
    poison = tl.where((size - size == 0) & (good | (size == 0)), 0.0, float("nan"))
    half = tl.floor(0.5 * exponent)
    scale = 0.5 * tl.sqrt(0.5 * tl.exp2(exponent - 2 * half)) * tl.exp2(half)
    keep = tl.where(size > 0, 1 / unit, 0.0)
    target = row * n + column
    tl.store(S + target, keep * scale * (Y + tl.trans(Y)) + poison, inside)
    tl.store(R + target, keep * (0.25 / scale) * (Z + tl.trans(Z)) + poison, inside)


@triton.jit
def roots_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, widest, N: tl.constexpr, CHEAP: tl.constexpr
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype.

    ``table`` holds three schedules of STEPS steps of five coefficients, then the steps for easy matrices; ``widest`` is
    the last shift to try on a matrix that is not positive, relative to a bound of its largest eigenvalue.
    """
    matrix = tl.program_id(0).to(tl.int64)
    _, _, _, eye = _lanes(n, N)
    A += matrix * stride_batch
    S += matrix * n * n
    R += matrix * n * n
    X, trace, exponent, size = _scaled(A, n, stride_row, stride_column, ridge, N)
    m1, m2 = trace / n, total(X * X) / n
    schedule = choose_schedule(m1, m2)
    done = m2 < 0
    if suits_fast_path(m1, m2, n):
        Y, Z, done = _easy(X, eye, m1, m2, n, table)
        if done:
            _deliver(S, R, Y, Z, UNIT, exponent, size, done, n, N)
    if not done:
        # Read once more: easy matrices need the registers that would keep it.
        X, trace, exponent, size = _scaled(A, n, stride_row, stride_column, ridge, N)
        Y, Z = eye, eye
        attempt = 0
        shift = 0.0 * widest
        while (attempt < 4) & (not done):
            schedule = tl.where(attempt > 0, 2, schedule)
            steps = table + schedule * (STEPS * 5)
            Y, Z, done, theta = _careful(X, eye, n, steps, schedule, attempt == 0, CHEAP)
            if not done:
                # Singular, negative by rounding, or indefinite.
                wider = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, widest))
                X += (wider - shift) * theta * eye
                shift = wider
                attempt += 1
        _deliver(S, R, Y, Z, 1.0, exponent, size, done, n, N)
