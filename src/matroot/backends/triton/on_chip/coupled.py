"""The coupled iteration for roots of one matrix in one program, every product FP16X3.

One loop serves all matrices; ill-conditioned ones take more steps of it. Three rules keep rounding small where tensor
cores truncate sums. Steps are made for moderate intervals, so that none takes an eigenvalue close to zero on its way to
one. Multiples of the identity stay out of factors: they are added in float32. Factors keep their order and are not
replaced by their transposes: Z Y is symmetric only up to rounding, and the iteration is stable in this order alone.
Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    FOURTH,
    TAYLOR_THRESHOLD,
    UNIT,
    centred_eigenvalue_bound,
    choose_schedule,
    fp16x3_matmul,
    suits_fast_path,
    total,
)

# Kinds of steps, in the order of the table, which begins with the first step; see schedules.py.
WIDE = tl.constexpr(0)
NARROW = tl.constexpr(1)
TAYLOR = tl.constexpr(2)
COLUMNS = tl.constexpr(6)  # of the table
GROWTH = tl.constexpr(5)  # the column of factors by which steps multiply small eigenvalues of Y and Z
MAX_STEPS = tl.constexpr(12)
# A wide step after a narrow one, for eigenvalues that are still small, only if the growth so far is less.
SMALL_GROWTH = tl.constexpr(50.0)
# Eigenvalues that are not close to one after so much growth are zero up to rounding, and are left as they are.
FULL_GROWTH = tl.constexpr(1500.0)
DIVERGED = tl.constexpr(1e12)


@triton.jit
def _first_step(X, eye, m1, m2, n, table) -> tuple:
    """Y and Z in UNIT after the first step, and a bound of the largest eigenvalue; m1, m2 are means of powers."""
    square = fp16x3_matmul(X, X)
    theta = 1.02 * centred_eigenvalue_bound(m1, m2, total(X * square) / n, total(square * square) / n, n)
    inverse = 1.0 / theta
    root = UNIT * tl.sqrt(inverse)
    c0 = tl.load(table) * root
    c1 = tl.load(table + 1) * root * inverse
    c2 = tl.load(table + 2) * root * inverse * inverse
    Z = c0 * eye + c1 * X + c2 * square
    mean = c0 + c1 * m1 + c2 * m2  # of the diagonal
    return mean * X + fp16x3_matmul(X, Z - mean * eye), Z, theta


@triton.jit
def _step(Y, Z, E, square, eye, n, spread, last, c, one) -> tuple:
    """Y and Z after a step in powers of E = I - Z Y, which is in UNIT, and its square in UNIT^2."""
    T = tl.load(c + 1) * E + (tl.load(c + 2) / UNIT) * square
    rest = tl.load(c + 3) * E + (tl.load(c + 4) / UNIT) * square
    if last:  # noqa: SIM108 - these terms are 2e-4 at most
        higher = tl.dot(square.to(tl.float16), rest.to(tl.float16))
    else:
        higher = fp16x3_matmul(square, rest)
    T += higher * (1 / (UNIT * UNIT))
    mean = 0.0
    if spread:  # else T is small
        mean = total(tl.where(eye > 0, T, 0.0)) / n
        T -= mean * eye
    factor = 1 + tl.load(c) + mean * (1 / UNIT)
    # Times one, which the compiler does not know: it would keep the halves of Y from Z Y on, and there is no room.
    left = Y * one
    return factor * Y + fp16x3_matmul(left, T) * (1 / UNIT), factor * Z + fp16x3_matmul(T, Z) * (1 / UNIT)


@triton.jit
def coupled_iteration(X, eye, m1, m2, n, table) -> tuple:
    """Roots Y and Z in UNIT, whether they are roots, and a bound of the largest eigenvalue.

    Two wide steps, one or none, as the moments of the spectrum suggest, a narrow one, and Taylor's until the sum of the
    fourth powers of the eigenvalues e of E shows that one is the last. Where some e are still close to one a wide and a
    narrow step may come between. If they stay there, eigenvalues of X are zero up to rounding. The root has about
    FULL_GROWTH times them, which is small: nothing more is to do, unless e above one tell of negative ones that grow.
    """
    wide = tl.where(suits_fast_path(m1, m2, n), 0, tl.maximum(choose_schedule(m1, m2), 1))
    spread = wide > 0
    Y, Z, theta = _first_step(X, eye, m1, m2, n, table)
    growth = tl.load(table + GROWTH)
    step = wide * 0
    kind = step + WIDE  # after the first step all is as after a wide one
    found = theta < 0
    running = theta == theta
    while running:
        E = eye * UNIT - fp16x3_matmul(Z, Y) * (1 / UNIT)
        square = fp16x3_matmul(E, E)
        fourth, second = theta, theta  # placeholders: they do not matter after a wide step
        converged = theta < 0
        after_wide = kind == WIDE
        if not after_wide:
            fourth = total(square * square) * FOURTH
            converged = fourth < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD
            if not converged:
                second = total(E * E) * (1 / (UNIT * UNIT))
        lagging = (not converged) & (fourth > 0.8 * second) & (growth < SMALL_GROWTH)
        kind = tl.where(after_wide, tl.where(wide > 0, WIDE, NARROW), tl.where(lagging, WIDE, TAYLOR))
        wide -= 1
        c = table + (1 + kind) * COLUMNS
        Y, Z = _step(Y, Z, E, square, eye, n, spread, converged, c, tl.where(growth > 0, 1.0, 0.0))
        growth *= tl.load(c + GROWTH)
        step += 1
        exhausted = (kind == TAYLOR) & (growth > FULL_GROWTH) & (fourth > 0.9 * second)
        found = converged | (exhausted & (fourth - second < 0.25 + 0.03 * second))
        running = (fourth < DIVERGED) & (step < MAX_STEPS) & (not converged) & (not exhausted)
    return Y, Z, found, theta
