"""Phases of the fast path to roots, tile by tile.

The steps of the fast path on chip, with all intermediate matrices in memory. A matrix that does not suit the fast path
is deferred, and later phases skip it. ``matrix_stats`` of a matrix: the exponent of the power of two it was divided by,
the mean of its eigenvalues after that, and its number of middle steps: one, or two where covariances of few samples
need the longer fast path.

Buffers of a matrix; steps after the first are counted from zero, and alternate.
0  X, later the correction D
1  X^2, then U of even steps, Y of odd ones
2  Y of even steps, U of odd ones
3  Z of even steps
4  E = I - Z Y
5  Z of odd steps
In the last step E^2 takes the place of U.
U is E^2 + a E with a = c3/(2 c4): D = c0 + c1 E + ... + c4 E^4 is a polynomial in E, U and U^2, one product less.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import (
    TAYLOR_THRESHOLD,
    centred_eigenvalue_bound,
    fast_middle_steps,
    total,
)
from ..scaling import floor_log2, times_power_of_two
from .split_fp16 import (
    HIGH_ONLY,
    SUM_ROWS,
    fp16_matmul,
    load_split,
    matrix_elements,
    split_matmul,
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
    lower_tile_count,
    lower_tile_index,
    sqrt_power_of_two,
    store_result,
    sum_slots,
    weighted_lower_tile,
)

STEPS = tl.constexpr(4)  # of each of both schedules in the table
ROOTS_STATS = tl.constexpr(3)  # numbers of matrix_stats per matrix
MAX_SIZE = tl.constexpr(1024)  # rows of the largest matrix
NEGLIGIBLE = tl.constexpr(6e-7**4)
"""The square of the mean sixth power of the eigenvalues of E up to which the last step omits E^3, whose coefficient is
5/16."""
ASYMMETRY = tl.constexpr(7.2e-7)
"""12 u. The relative error of a root is a quarter of |E - E^T| before the last step, relative to sqrt(n): E is taken
for symmetric, which is only stable while that is small."""


@triton.jit
def middle_steps(matrix_stats, matrix):
    """The number of middle steps of a matrix: one or two, whatever is stored for one that is deferred."""
    return tl.where(load_bypass_l1(matrix_stats + ROOTS_STATS * matrix + 2) == 2, 2, 1)


@triton.jit
def _coefficients(table, last_step, step):
    """Those of a step, given the number of the last one: one in the fast path, two in the longer one."""
    return table + (last_step - 1) * (5 * STEPS) + 5 * (step + 1)


@triton.jit
def _root_buffer(step):
    """The buffer of Y before a step."""
    return tl.where(step % 2 == 0, 2, 1)


@triton.jit
def _inverse_buffer(step):
    """The buffer of Z before a step."""
    return tl.where(step % 2 == 0, 3, 5)


@triton.jit(noinline=True)
def scale_input(
    A, scratch, matrix_stats, deferred, n, stride_batch, stride_row, stride_column, ridge,
    matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """X, with a mean eigenvalue of one to two before the ridge; the identity where the mean is out of range."""
    source = A + matrix * stride_batch
    lane = tl.arange(0, MAX_SIZE).to(tl.int64)  # offsets may need 64 bits
    diagonal = tl.load(source + lane * stride_row + lane * stride_column, lane < n, 0.0).to(tl.float32)
    i, j = lower_tile_index(t)
    x = load_symmetric(source, i, j, n, stride_row, stride_column, TILE)
    mean = tl.sum(diagonal, 0) / n
    usable = (mean > 1e-36) & (mean < 1e36)
    exponent = tl.where(usable, floor_log2(mean), 0)
    mean = times_power_of_two(mean, -exponent)
    eye = identity(i, j, n, TILE)
    x = tl.where(usable, times_power_of_two(x, -exponent) + ridge * mean * eye, eye)
    store_split_symmetric(scratch + matrix * (BUFFERS * matrix_elements(side)), x, i, j, side, TILE)
    if t == 0:
        tl.store(matrix_stats + ROOTS_STATS * matrix, exponent.to(tl.float32))
        tl.store(matrix_stats + ROOTS_STATS * matrix + 1, (1 + ridge) * mean)
        defer(deferred, matrix, not usable)


@triton.jit(noinline=True)
def square_input(scratch, sums, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """X^2, and the terms of the moments of X."""
    buffer_stride = matrix_elements(side)
    X = scratch + matrix * (BUFFERS * buffer_stride)
    i, j, weight = weighted_lower_tile(t)
    x = load_split(X, i, j, side, TILE)
    square = split_matmul(X, X, i, j, side, TILE, DEPTH)
    slot = sums + matrix * (SUM_ROWS * SLOTS) + t
    tl.store(slot, weight * total(x * x))
    tl.store(slot + SLOTS, weight * total(x * square))
    tl.store(slot + 2 * SLOTS, weight * total(square * square))
    store_split_symmetric(X + buffer_stride, square, i, j, side, TILE)


@triton.jit(noinline=True)
def first_step(
    scratch, sums, matrix_stats, deferred, table, n,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y and Z after the first step, if the moments suit the fast path."""
    buffer_stride, lower_tiles = matrix_elements(side), lower_tile_count(side, TILE)
    X = scratch + matrix * (BUFFERS * buffer_stride)
    sums += matrix * (SUM_ROWS * SLOTS)
    m1 = load_bypass_l1(matrix_stats + ROOTS_STATS * matrix + 1)
    squares = load_slots(sums, lower_tiles)
    cubes, fourths = load_slots(sums + SLOTS, lower_tiles), load_slots(sums + 2 * SLOTS, lower_tiles)
    m2, m3, m4 = tl.sum(squares, 0) / n, tl.sum(cubes, 0) / n, tl.sum(fourths, 0) / n
    count = fast_middle_steps(m1, m2)
    if count > 0:
        i, j = lower_tile_index(t)
        x, square = load_split(X, i, j, side, TILE), load_split(X + buffer_stride, i, j, side, TILE)
        cube = split_matmul(X, X + buffer_stride, i, j, side, TILE, DEPTH)
        inverse = 1 / (1.02 * centred_eigenvalue_bound(m1, m2, m3, m4, n))
        z0 = tl.load(table) * tl.sqrt(inverse)
        z1 = tl.load(table + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + 2) * tl.sqrt(inverse) * inverse * inverse
        y, z = z0 * x + z1 * square + z2 * cube, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square
        store_split_symmetric(X + 2 * buffer_stride, y, i, j, side, TILE)
        store_split_symmetric(X + 3 * buffer_stride, z, i, j, side, TILE)
        if t == 0:
            tl.store(matrix_stats + ROOTS_STATS * matrix + 2, count.to(tl.float32))
    elif t == 0:
        defer(deferred, matrix, True)


@triton.jit(noinline=True)
def residual(
    scratch, sums, n, step, LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """E = I - Z Y; in the last step the terms of its asymmetry on the diagonal."""
    buffer_stride = matrix_elements(side)
    D = scratch + matrix * (BUFFERS * buffer_stride)
    Y, Z = D + _root_buffer(step) * buffer_stride, D + _inverse_buffer(step) * buffer_stride
    i, j = lower_tile_index(t)
    e = identity(i, j, n, TILE) - split_matmul(Z, Y, i, j, side, TILE, DEPTH)
    if LAST and i == j:
        skew = e - tl.trans(e)
        tl.store(sums + matrix * (SUM_ROWS * SLOTS) + 4 * SLOTS + i, total(skew * skew))
    store_split_symmetric(D + 4 * buffer_stride, e, i, j, side, TILE)


@triton.jit
def _linear_coefficient(c):
    """a in U = E^2 + a E, given the coefficients of D."""
    return 0.5 * tl.load(c + 3) / tl.load(c + 4)


@triton.jit(noinline=True)
def residual_square(
    scratch, sums, table, n, last_step, step,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """U; in the last step E^2, small enough for float16, and the correction up to that power."""
    buffer_stride = matrix_elements(side)
    D = scratch + matrix * (BUFFERS * buffer_stride)
    E, U = D + 4 * buffer_stride, D + _root_buffer(step + 1) * buffer_stride
    c = _coefficients(table, last_step, step)
    i, j, weight = weighted_lower_tile(t)
    e = load_split(E, i, j, side, TILE)
    if LAST:
        square = fp16_matmul(E, E, i, j, side, TILE, DEPTH)
        tl.store(sums + matrix * (SUM_ROWS * SLOTS) + 3 * SLOTS + t, weight * total(square * square))
        d = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * e + tl.load(c + 2) * square
        store_split_symmetric(D, d, i, j, side, TILE)
        store_split_symmetric(U, square, i, j, side, TILE, HIGH_ONLY)
    else:
        u = split_matmul(E, E, i, j, side, TILE, DEPTH) + _linear_coefficient(c) * e
        store_split_symmetric(U, u, i, j, side, TILE)


@triton.jit
def needs_higher_powers(sums, n, matrix, side, TILE: tl.constexpr):
    """Whether powers of E above its square would change the result of the last step.

    The square of the sum of sixth powers of its eigenvalues is at most the cube of the sum of fourth powers.
    """
    fourth = sum_slots(sums + matrix * (SUM_ROWS * SLOTS) + 3 * SLOTS, lower_tile_count(side, TILE))
    return NEGLIGIBLE * n * n < fourth * fourth * fourth


@triton.jit(noinline=True)
def complete_correction(
    scratch, table, n, last_step, step,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """D with all powers of E; in the last step those above the square in float16."""
    buffer_stride = matrix_elements(side)
    D = scratch + matrix * (BUFFERS * buffer_stride)
    E, U = D + 4 * buffer_stride, D + _root_buffer(step + 1) * buffer_stride
    c = _coefficients(table, last_step, step)
    i, j = lower_tile_index(t)
    if LAST:
        d = load_split(D, i, j, side, TILE)
        d += tl.load(c + 3) * fp16_matmul(U, E, i, j, side, TILE, DEPTH)
        d += tl.load(c + 4) * fp16_matmul(U, U, i, j, side, TILE, DEPTH)
    else:
        a = _linear_coefficient(c)
        b = tl.load(c + 2) - tl.load(c + 4) * a * a
        d = tl.load(c) * identity(i, j, n, TILE) + (tl.load(c + 1) - a * b) * load_split(E, i, j, side, TILE)
        d += b * load_split(U, i, j, side, TILE) + tl.load(c + 4) * split_matmul(U, U, i, j, side, TILE, DEPTH)
    store_split_symmetric(D, d, i, j, side, TILE)


@triton.jit
def _converged(sums, n, last_step, side, TILE: tl.constexpr):
    """Whether the last step suffices, and in the longer fast path whether the root is accurate.

    Its error may be about 3 u (sqrt(n) + 9): what a condition number of 81 allows, and few matrices on this path have a
    lower one. The tiles on the diagonal stand for all.
    """
    fourth = sum_slots(sums + 3 * SLOTS, lower_tile_count(side, TILE))
    limit = ASYMMETRY * (tl.sqrt(tl.cast(n, tl.float32)) + 9)
    accurate = sum_slots(sums + 4 * SLOTS, side // TILE) < TILE * limit * limit
    return (fourth < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD) & (accurate | (last_step == 1))


@triton.jit(noinline=True)
def apply_correction(
    scratch, sums, matrix_stats, deferred, S, R, n, last_step, step,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y + Y D, then Z + D Z; from the last step the roots, if they converged.

    D Z is the transpose of the computed Z D.
    """
    buffer_stride, lower_tiles = matrix_elements(side), lower_tile_count(side, TILE)
    D = scratch + matrix * (BUFFERS * buffer_stride)
    is_root = t < lower_tiles
    old = D + tl.where(is_root, _root_buffer(step), _inverse_buffer(step)) * buffer_stride
    i, j = lower_tile_index(t % lower_tiles)
    x = load_split(old, i, j, side, TILE)
    converged = _converged(sums + matrix * (SUM_ROWS * SLOTS), n, last_step, side, TILE)
    x += split_matmul(old, D, i, j, side, TILE, DEPTH)
    if LAST:
        if converged:
            exponent = load_bypass_l1(matrix_stats + ROOTS_STATS * matrix).to(tl.int32)
            scale = sqrt_power_of_two(tl.where(is_root, exponent, -exponent))
            store_result(tl.where(is_root, S, R) + matrix * n * n, scale * x, i, j, n, TILE)
        elif t == 0:
            defer(deferred, matrix, True)
    else:
        new = D + tl.where(is_root, _root_buffer(step + 1), _inverse_buffer(step + 1)) * buffer_stride
        store_split_symmetric(new, x, i, j, side, TILE)
