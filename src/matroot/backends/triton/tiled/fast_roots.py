"""Phases of the fast path to roots, tile by tile.

The steps of the fast path on chip, with all intermediate matrices in memory. A matrix that does not suit the fast path
is deferred, and later phases skip it. ``matrix_stats`` of a matrix: the exponent of the power of two it was divided by,
the mean of its eigenvalues after that, and its number of middle steps: one, or two where covariances of few samples
need the longer fast path.

After ``scale_input`` come SQUARE_INPUT and FIRST_STEP, then RESIDUAL, RESIDUAL_SQUARE, CORRECTION and UPDATE for every
middle step, and LAST_STEP further for the last one.

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
    load_split_if,
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

SQUARE_INPUT = tl.constexpr(0)  # phases
FIRST_STEP = tl.constexpr(1)
RESIDUAL = tl.constexpr(2)
RESIDUAL_SQUARE = tl.constexpr(3)
CORRECTION = tl.constexpr(4)
UPDATE = tl.constexpr(5)
LAST_STEP = tl.constexpr(6)
ROOTS_PHASES = tl.constexpr(10)

X = tl.constexpr(0)  # buffers
D = tl.constexpr(0)
SQUARE = tl.constexpr(1)
E = tl.constexpr(4)

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
    tl.debug_barrier()
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
    tl.debug_barrier()


@triton.jit
def _first_polynomial(sums, matrix_stats, table, n, matrix, tiles) -> tuple:
    """Coefficients of Z as a polynomial of X after the first step, and the number of middle steps, zero if no number
    seems enough; from the moments of X."""
    m1 = load_bypass_l1(matrix_stats + ROOTS_STATS * matrix + 1)
    squares = load_slots(sums, tiles)
    cubes, fourths = load_slots(sums + SLOTS, tiles), load_slots(sums + 2 * SLOTS, tiles)
    m2, m3, m4 = tl.sum(squares, 0) / n, tl.sum(cubes, 0) / n, tl.sum(fourths, 0) / n
    inverse = 1 / (1.02 * centred_eigenvalue_bound(m1, m2, m3, m4, n))
    z0 = tl.load(table) * tl.sqrt(inverse)
    z1 = tl.load(table + 1) * tl.sqrt(inverse) * inverse
    z2 = tl.load(table + 2) * tl.sqrt(inverse) * inverse * inverse
    return z0, z1, z2, fast_middle_steps(m1, m2)


@triton.jit
def _correction(c) -> tuple:
    """Coefficients of D in I, E, U and U^2; and a in U = E^2 + a E."""
    c0, c1, c2, c3, c4 = tl.load(c), tl.load(c + 1), tl.load(c + 2), tl.load(c + 3), tl.load(c + 4)
    a = 0.5 * c3 / c4
    b = c2 - c4 * a * a
    return c0, c1 - a * b, b, c4, a


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


@triton.jit
def product_tile(
    S, R, scratch, sums, matrix_stats, deferred, table, n, last_step, step, phase,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Store a tile of a phase: a product, and multiples of two matrices and of the identity.

    All phases but two of the last step are here, since compiling a product takes long. Where Y is stored or its next
    value, so is Z, in tiles of their own. D Z is the transpose of the computed Z D.
    """
    buffer_stride, lower_tiles = matrix_elements(side), lower_tile_count(side, TILE)
    A = scratch + matrix * (BUFFERS * buffer_stride)
    sums += matrix * (SUM_ROWS * SLOTS)
    is_last = phase >= LAST_STEP
    kind = phase - LAST_STEP + RESIDUAL if is_last else phase
    is_Z = t >= lower_tiles
    i, j = lower_tile_index(t % lower_tiles)
    old = tl.where(is_Z, _inverse_buffer(step), _root_buffer(step))
    target = tl.where(is_Z, _inverse_buffer(step + 1), _root_buffer(step + 1))
    left, right, first, second, extent = old, D, old, E, side
    of_product, of_first, of_second, of_identity = 1.0, 1.0, 0.0, 0.0
    if phase == SQUARE_INPUT:
        left, right, first, target, of_first = X, X, X, SQUARE, 0.0
    elif phase == FIRST_STEP:
        z0, z1, z2, count = _first_polynomial(sums, matrix_stats, table, n, matrix, lower_tiles)
        left, right, first, second, target = X, SQUARE, X, SQUARE, old
        of_product, extent = z2, tl.where(is_Z | (count == 0), 0, side)
        of_first, of_second = tl.where(is_Z, z1, z0), tl.where(is_Z, z2, z1)
        of_identity = tl.where(is_Z, z0, 0.0)
        if t == 0:
            tl.store(matrix_stats + ROOTS_STATS * matrix + 2, count.to(tl.float32))
            if count == 0:
                defer(deferred, matrix, True)
    elif kind == RESIDUAL:
        left, right, target = _inverse_buffer(step), _root_buffer(step), E
        of_product, of_first, of_identity = -1.0, 0.0, 1.0
    elif kind == RESIDUAL_SQUARE:
        _, _, _, _, a = _correction(_coefficients(table, last_step, step))
        left, right, first, of_first = E, E, E, a
    elif kind == CORRECTION:
        of_identity, of_first, of_second, of_product, _ = _correction(_coefficients(table, last_step, step))
        left, right, first, second, target = target, target, E, target, D

    product = split_matmul(A + left * buffer_stride, A + right * buffer_stride, i, j, extent, side, TILE, DEPTH)
    eye = identity(i, j, n, TILE)
    x = load_split_if(kind != RESIDUAL, A + first * buffer_stride, i, j, side, TILE)
    if phase == SQUARE_INPUT:
        weight = tl.where(i == j, 1.0, 2.0)
        tl.store(sums + t, weight * total(x * x))
        tl.store(sums + SLOTS + t, weight * total(x * product))
        tl.store(sums + 2 * SLOTS + t, weight * total(product * product))
    out = of_product * product + of_first * x + of_identity * eye
    has_second = (phase == FIRST_STEP) | (kind == CORRECTION)
    out += of_second * load_split_if(has_second, A + second * buffer_stride, i, j, side, TILE)
    if kind == RESIDUAL and is_last and i == j:
        skew = out - tl.trans(out)
        tl.store(sums + 4 * SLOTS + i, total(skew * skew))
    if phase == ROOTS_PHASES - 1:
        if _converged(sums, n, last_step, side, TILE):
            exponent = load_bypass_l1(matrix_stats + ROOTS_STATS * matrix).to(tl.int32)
            scale = sqrt_power_of_two(tl.where(is_Z, -exponent, exponent))
            store_result(tl.where(is_Z, R, S) + matrix * n * n, scale * out, i, j, n, TILE)
        elif t == 0:
            defer(deferred, matrix, True)
    else:
        store_split_symmetric(A + target * buffer_stride, out, i, j, side, TILE)


@triton.jit
def last_square_tile(
    scratch, sums, table, n, last_step, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """E^2 in the last step, small enough for float16, and the correction up to that power."""
    buffer_stride = matrix_elements(side)
    A = scratch + matrix * (BUFFERS * buffer_stride)
    c = _coefficients(table, last_step, last_step)
    i, j, weight = weighted_lower_tile(t)
    square = fp16_matmul(A + E * buffer_stride, A + E * buffer_stride, i, j, side, TILE, DEPTH)
    tl.store(sums + matrix * (SUM_ROWS * SLOTS) + 3 * SLOTS + t, weight * total(square * square))
    e = load_split(A + E * buffer_stride, i, j, side, TILE)
    d = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * e + tl.load(c + 2) * square
    store_split_symmetric(A + D * buffer_stride, d, i, j, side, TILE)
    store_split_symmetric(A + _root_buffer(last_step + 1) * buffer_stride, square, i, j, side, TILE, HIGH_ONLY)


@triton.jit
def needs_higher_powers(sums, n, matrix, side, TILE: tl.constexpr):
    """Whether powers of E above its square would change the result of the last step.

    The square of the sum of sixth powers of its eigenvalues is at most the cube of the sum of fourth powers.
    """
    fourth = sum_slots(sums + matrix * (SUM_ROWS * SLOTS) + 3 * SLOTS, lower_tile_count(side, TILE))
    return NEGLIGIBLE * n * n < fourth * fourth * fourth


@triton.jit
def last_powers_tile(scratch, table, last_step, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """The correction of the last step with the powers of E above its square, in float16."""
    buffer_stride = matrix_elements(side)
    A = scratch + matrix * (BUFFERS * buffer_stride)
    square = A + _root_buffer(last_step + 1) * buffer_stride
    c = _coefficients(table, last_step, last_step)
    i, j = lower_tile_index(t)
    d = load_split(A + D * buffer_stride, i, j, side, TILE)
    for power in range(3, 5):
        right = tl.where(power == 3, A + E * buffer_stride, square)
        d += tl.load(c + power) * fp16_matmul(square, right, i, j, side, TILE, DEPTH)
    store_split_symmetric(A + D * buffer_stride, d, i, j, side, TILE)
