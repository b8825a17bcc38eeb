"""Phases of the fast path to gradients, tile by tile.

The preconditioned equation V X + X V = C'/mu of the kernels on chip, solved by Chebyshev's iteration and refined once,
with all intermediate matrices in memory. A matrix that does not suit the fast path is deferred, and later phases skip
it. ``matrix_stats`` of a matrix: mu, the exponents of the units of C and of the cotangent stored first, and a bound of
the largest eigenvalue of V - 2 I.

Buffers of a matrix
0  V - 2 I
1  the cotangent in its unit, later C and C'
2  the right-hand side of the refinement
3  mu R
4  (mu R) C, then X of the refinement
5  X
The iteration works in float16: both X alternate between the high part of their buffer and its low part.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import RESIDUAL_SCALE, chebyshev_interval
from ..primitives import centred_eigenvalue_bound, total
from ..scaling import times_power_of_two
from .split_fp16 import (
    HIGH_ONLY,
    SUM_ROWS,
    anticommutator,
    fp16_anticommutator,
    fp16_matmul,
    load_high,
    load_split,
    matrix_elements,
    split_matmul,
    store_split,
    store_split_symmetric,
)
from .tiles import (
    BUFFERS,
    SLOTS,
    defer,
    identity,
    load_bypass_l1,
    load_slots,
    load_symmetric,
    load_tile,
    lower_tile_count,
    lower_tile_index,
    sandwich_factor,
    sandwich_unit,
    store_result,
    store_tile_norm,
    sum_slots,
    unit_exponent,
    weighted_lower_tile,
)

GRADIENT_STATS = tl.constexpr(4)  # numbers of matrix_stats per matrix
MAX_STEPS = tl.constexpr(5)
"""Steps of the iteration at most, and of its refinement."""
TOLERANCE = tl.constexpr(4e-6)
"""Bound of the relative error after the refinement; the error is about half of it."""
MAX_RATE = tl.constexpr(0.315)
"""Convergence rate up to which MAX_STEPS steps, twice, reach the tolerance."""


@triton.jit(noinline=True)
def store_norms(
    R, GS, GR, sums, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """The terms of the trace and the norm of R and of the norms of the cotangents."""
    tl.debug_barrier()
    offset = matrix * n * n
    sums += matrix * (SUM_ROWS * SLOTS)
    i, j, weight = weighted_lower_tile(t)
    r = load_tile(R + offset, i, j, n, n, 1, TILE)
    tl.store(sums + t, total(r * identity(i, j, n, TILE)))
    tl.store(sums + SLOTS + t, weight * total(r * r))
    if HAS_S:
        store_tile_norm(sums + 2 * SLOTS, t, load_symmetric(GS + offset, i, j, n, n, 1, TILE), weight)
    if HAS_R:
        store_tile_norm(sums + 4 * SLOTS, t, load_symmetric(GR + offset, i, j, n, n, 1, TILE), weight)
    tl.debug_barrier()


@triton.jit(noinline=True)
def precondition(
    S, R, GS, GR, scratch, sums, matrix_stats, deferred, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """V - 2 I, mu R, and the cotangent of the inverse root, or else of the root, in its unit.

    The best 1/mu is the geometric mean of the largest and the least eigenvalue of R. Covariances have many small and
    few large eigenvalues: the geometric mean of the mean and the root mean square of those of R comes nearer to it than
    means of S do. Where the sum of squares overflows or underflows the matrix is deferred.
    """
    tl.debug_barrier()
    buffer_stride, lower_tiles = matrix_elements(side), lower_tile_count(side, TILE)
    offset = matrix * n * n
    sums += matrix * (SUM_ROWS * SLOTS)
    V = scratch + matrix * (BUFFERS * buffer_stride)
    i, j = lower_tile_index(t)
    v, r = load_tile(S + offset, i, j, n, n, 1, TILE), load_tile(R + offset, i, j, n, n, 1, TILE)
    c = load_symmetric((GR if HAS_R else GS) + offset, i, j, n, n, 1, TILE)
    traces, squares = load_slots(sums, lower_tiles), load_slots(sums + SLOTS, lower_tiles)
    cotangent_unit = unit_exponent(sums + (4 if HAS_R else 2) * SLOTS, lower_tiles)
    mu = tl.sqrt(n / tl.sum(traces, 0) * tl.sqrt(n / tl.sum(squares, 0)))
    unit = cotangent_unit
    if HAS_R:
        unit = sandwich_unit(mu, cotangent_unit)
        if HAS_S:
            unit = tl.maximum(unit, unit_exponent(sums + 2 * SLOTS, lower_tiles))
    r *= mu
    v = (1 / mu) * v + r - 2 * identity(i, j, n, TILE)
    store_split_symmetric(V, v, i, j, side, TILE)
    store_split_symmetric(V + buffer_stride, times_power_of_two(c, -cotangent_unit), i, j, side, TILE)
    store_split_symmetric(V + 3 * buffer_stride, r, i, j, side, TILE)
    if t == 0:
        stats = matrix_stats + GRADIENT_STATS * matrix
        tl.store(stats, mu)
        tl.store(stats + 1, unit.to(tl.float32))
        tl.store(stats + 2, cotangent_unit.to(tl.float32))
        defer(deferred, matrix, not ((mu > 0) & (mu < 1e36)))
    tl.debug_barrier()


@triton.jit
def left_product(scratch, sums, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """(mu R) GR, later (mu R) C and the terms of its trace."""
    buffer_stride = matrix_elements(side)
    tile_rows = side // TILE
    V = scratch + matrix * (BUFFERS * buffer_stride)
    i, j = t // tile_rows, t % tile_rows
    x = split_matmul(V + 3 * buffer_stride, V + buffer_stride, i, j, side, side, TILE, DEPTH)
    store_split(V + 4 * buffer_stride, x, i, j, side, TILE)
    if i == j:
        tl.store(sums + matrix * (SUM_ROWS * SLOTS) + i, total(x * identity(i, j, n, TILE)))


@triton.jit
def sandwich_right(
    scratch, matrix_stats, GS, n, HAS_S: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C = GS - R GR R, given (mu R) GR."""
    buffer_stride = matrix_elements(side)
    V = scratch + matrix * (BUFFERS * buffer_stride)
    stats = matrix_stats + GRADIENT_STATS * matrix
    unit, cotangent_unit = load_bypass_l1(stats + 1).to(tl.int32), load_bypass_l1(stats + 2).to(tl.int32)
    i, j = lower_tile_index(t)
    c = split_matmul(V + 4 * buffer_stride, V + 3 * buffer_stride, i, j, side, side, TILE, DEPTH)
    c *= -sandwich_factor(load_bypass_l1(stats), cotangent_unit - unit)
    if HAS_S:
        c += times_power_of_two(load_symmetric(GS + matrix * n * n, i, j, n, n, 1, TILE), -unit)
    store_split_symmetric(V + buffer_stride, c, i, j, side, TILE)


@triton.jit
def store_moments(scratch, sums, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """The terms of the moments of V - 2 I, for which float16 will do."""
    V = scratch + matrix * (BUFFERS * matrix_elements(side))
    i, j, weight = weighted_lower_tile(t)
    v = load_split(V, i, j, side, TILE)
    x = fp16_matmul(V, V, i, j, side, TILE, DEPTH)
    slot = sums + matrix * (SUM_ROWS * SLOTS) + 2 * SLOTS + t
    tl.store(slot, total(v * identity(i, j, n, TILE)))
    tl.store(slot + SLOTS, weight * total(v * v))
    tl.store(slot + 2 * SLOTS, weight * total(v * x))
    tl.store(slot + 3 * SLOTS, weight * total(x * x))


@triton.jit
def start_iteration(
    scratch, sums, matrix_stats, deferred, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C' and the first X, if the iteration converges fast enough."""
    buffer_stride, lower_tiles = matrix_elements(side), lower_tile_count(side, TILE)
    V = scratch + matrix * (BUFFERS * buffer_stride)
    sums += matrix * (SUM_ROWS * SLOTS)
    first, second = load_slots(sums + 2 * SLOTS, lower_tiles), load_slots(sums + 3 * SLOTS, lower_tiles)
    third, fourth = load_slots(sums + 4 * SLOTS, lower_tiles), load_slots(sums + 5 * SLOTS, lower_tiles)
    m1, m2, m3, m4 = tl.sum(first, 0) / n, tl.sum(second, 0) / n, tl.sum(third, 0) / n, tl.sum(fourth, 0) / n
    spectral_bound = tl.maximum(1.001 * centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01)
    centre, _, rate = chebyshev_interval(spectral_bound)
    if rate < MAX_RATE:
        i, j = lower_tile_index(t)
        c = load_split(V + buffer_stride, i, j, side, TILE)
        c += split_matmul(V + 4 * buffer_stride, V + 3 * buffer_stride, i, j, side, side, TILE, DEPTH)
        store_split(V + buffer_stride, c, i, j, side, TILE)
        store_split_symmetric(_iterate(V, side, 0, False), c / centre, i, j, side, TILE, HIGH_ONLY)
        if t == 0:
            tl.store(matrix_stats + GRADIENT_STATS * matrix + 3, spectral_bound)
    elif t == 0:
        defer(deferred, matrix, True)


@triton.jit
def _error_bound(rate, step):
    """Bound of the relative error before a step, counted from one."""
    return 2 * tl.exp2(step * tl.log2(rate))


@triton.jit
def step_counts(spectral_bound) -> tuple:
    """Steps of the iteration and of its refinement.

    At least one each, as the bound is at least 0.01, and at most MAX_STEPS, though the bound is arbitrary where a
    matrix is deferred.
    """
    _, _, rate = chebyshev_interval(spectral_bound)
    steps = 2
    while (steps < 2 * MAX_STEPS) & (2 * _error_bound(rate, steps + 2) > TOLERANCE):
        steps += 1
    return (steps + 1) // 2, steps // 2


@triton.jit
def _chebyshev_quotient(rate, step):
    """The quotient of the values of two successive Chebyshev polynomials, the second of this degree."""
    now, before = _error_bound(rate, step), _error_bound(rate, step - 1)
    return rate * (4 + before * before) / (4 + now * now)


@triton.jit
def _iterate(V, side, step, refining):
    """Where X is stored after a step: it replaces that of two steps before."""
    return V + tl.where(refining, 4, 5) * matrix_elements(side) + step % 2 * side * side


@triton.jit
def chebyshev_step(
    scratch, sums, matrix_stats, out, n, ridge, spectral_bound, first_steps, step, refining, is_last,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A step, counted from one; the last one of the refinement adds X after ``first_steps`` and stores the result."""
    _, width, rate = chebyshev_interval(spectral_bound)
    V = scratch + matrix * (BUFFERS * matrix_elements(side))
    X, target = _iterate(V, side, step - 1, refining), _iterate(V, side, step, refining)
    i, j = lower_tile_index(t)
    quotient = _chebyshev_quotient(rate, step + 1)
    factor, momentum = 2 * quotient / width, quotient * _chebyshev_quotient(rate, step)
    x = -factor * fp16_anticommutator(V, X, i, j, side, TILE, DEPTH)
    x += factor * load_high(V + tl.where(refining, 2, 1) * matrix_elements(side), i, j, side, TILE)
    x += (1 + momentum - 4 * factor) * load_high(X, i, j, side, TILE)
    # Before the first step X was zero, which is not stored.
    x -= tl.where(step == 1, 0.0, momentum) * load_high(tl.where(step == 1, X, target), i, j, side, TILE)
    if is_last:
        x = load_high(_iterate(V, side, first_steps, False), i, j, side, TILE) + x * (1 / RESIDUAL_SCALE)
        _store_gradient(x, sums, matrix_stats, out, n, ridge, matrix, i, j, side, TILE)
    else:
        store_split_symmetric(target, x, i, j, side, TILE, HIGH_ONLY)


@triton.jit
def start_refinement(
    scratch, spectral_bound, first_steps, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """The residual of X as the right-hand side of the refinement, and the first X of that."""
    centre, _, _ = chebyshev_interval(spectral_bound)
    buffer_stride = matrix_elements(side)
    V = scratch + matrix * (BUFFERS * buffer_stride)
    X = _iterate(V, side, first_steps, False)
    i, j = lower_tile_index(t)
    product = anticommutator(V, X, i, j, side, TILE, DEPTH)
    c = load_split(V + buffer_stride, i, j, side, TILE) - 4 * load_high(X, i, j, side, TILE) - product
    c *= RESIDUAL_SCALE
    store_split(V + 2 * buffer_stride, c, i, j, side, TILE, HIGH_ONLY)
    store_split_symmetric(_iterate(V, side, 0, True), c / centre, i, j, side, TILE, HIGH_ONLY)


@triton.jit
def _store_gradient(x, sums, matrix_stats, out, n, ridge, matrix, i, j, side, TILE: tl.constexpr):
    """X out of its unit, with the ridge term: of S X + X S = C the trace of X is half that of R C."""
    if ridge != 0:
        trace = 0.5 * sum_slots(sums + matrix * (SUM_ROWS * SLOTS), side // TILE)
        x += (ridge / n) * trace * identity(i, j, n, TILE)
    stats = matrix_stats + GRADIENT_STATS * matrix
    mu, unit = load_bypass_l1(stats), load_bypass_l1(stats + 1).to(tl.int32)
    store_result(out + matrix * n * n, times_power_of_two((1 / mu) * x, unit), i, j, n, TILE)
