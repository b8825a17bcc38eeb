"""The products of the gradient: one kernel, launched once for every product.

V X + X V = C'/mu, preconditioned, has the solution X = 2 p (K C' K + H C' H + F (K C' K + H C' H) F + ...)/mu with
K = (V + p)^-1, H = (I - 2 p K) K and F = (I - 2 p K)^2; every term doubles their number. K comes from Newton's
iteration, from a quadratic polynomial of V on. All of it needs as many products as a bound of the largest eigenvalue of
V tells; launches beyond that number end at once.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import initial_inverse
from ..primitives import centred_eigenvalue_bound, total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, sandwich_factor
from .gradient_input import (
    C_SIZE,
    C_SQUARES,
    COTANGENT_UNIT,
    MU,
    MU_R,
    NORM,
    RESULT_UNIT,
    STATE,
    STATS,
    SUM_ROWS,
    TOP,
    UNIT_G,
    V_CUBES,
    V_FOURTHS,
    V_SIZE,
    V_SQUARES,
    V_TRACES,
    X_TRACES,
    C,
    V,
    unit_of_V,
    unit_of_X,
)
from .roots_input import RUNNING
from .tiles import (
    buffer,
    load_planes,
    matrix_and_tile,
    product_tile,
    store_planes,
    store_symmetric,
    sum_slots,
    tile_index,
)

SANDWICH_LEFT = tl.constexpr(0)  # phases
SANDWICH_RIGHT = tl.constexpr(1)
START_INVERSE = tl.constexpr(2)
NEWTON = tl.constexpr(3)
NEWTON_RESIDUAL = tl.constexpr(4)
INVERSE_SQUARE = tl.constexpr(5)
TERMS_LEFT = tl.constexpr(6)
TERMS = tl.constexpr(7)
DOUBLE_LEFT = tl.constexpr(8)
DOUBLE = tl.constexpr(9)

T = tl.constexpr(3)  # buffers; X is in that of C
Q = tl.constexpr(4)  # V^2, later F
K = tl.constexpr(5)
W = tl.constexpr(6)
HC = tl.constexpr(7)
UNIT = tl.constexpr(8192.0)  # of the residual of K, and of F

MAX_NEWTON = tl.constexpr(6)
MAX_DOUBLINGS = tl.constexpr(7)
TOLERANCE = tl.constexpr(1e-6)


@triton.jit
def tiles_of_phase(phase, repetition, tile_rows):
    """The programs of a phase per matrix."""
    every, lower = tile_rows * tile_rows, tile_rows * (tile_rows + 1) // 2
    also_square = ((phase == SANDWICH_LEFT) & (repetition == 0)) | (phase == DOUBLE_LEFT)
    left = (phase == SANDWICH_LEFT) | also_square
    tiles = tl.where(left, every + tl.where(also_square, lower, 0), lower)
    return tl.where(phase == TERMS_LEFT, 2 * every, tiles)


@triton.jit
def _newton_error(error, count):
    """The error of K after so many iterations, given the first; a factor centres that of each at zero."""
    for _ in range(count):
        error *= error / (2 - error * error)
    return error


@triton.jit
def _newton_count(error):
    """The iterations that K takes: at least one. K is used twice in each term."""
    count = 1
    error = _newton_error(error, 1)
    while (error > 0.7 * TOLERANCE) & (count < MAX_NEWTON):
        error = _newton_error(error, 1)
        count += 1
    return count


@triton.jit
def _factor(p, doublings):
    """A bound of F after so many doublings."""
    factor = (p - 2) / (p + 2)
    for _ in range(doublings + 1):
        factor *= factor
    return factor


@triton.jit
def _inverse_buffer(count):
    """Where K is after so many iterations; mu R is no longer needed."""
    return tl.where(count % 2 == 0, K, MU_R)


@triton.jit
def _factor_buffer(doublings):
    """Where F is after so many doublings; H, which replaced V, is no longer needed after the first terms."""
    return tl.where(doublings % 2 == 0, Q, V)


@triton.jit
def _norm_exponent(slots, count):
    """e such that a matrix with these squares has a norm below 2^e, within reason."""
    return tl.minimum(tl.maximum(floor_log2(tl.sqrt(sum_slots(slots, count))) + 1, -30), 60)


@triton.jit
def _top(slots, n, row, lower_tiles):
    """Bound of the largest eigenvalue of V - 2 I, from its moments."""
    m1, m2 = sum_slots(slots + V_TRACES * row, lower_tiles) / n, sum_slots(slots + V_SQUARES * row, lower_tiles) / n
    m3, m4 = sum_slots(slots + V_CUBES * row, lower_tiles) / n, sum_slots(slots + V_FOURTHS * row, lower_tiles) / n
    return tl.maximum(1.001 * centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01)


@triton.jit
def _sandwich_exponent(top):
    """e such that (mu R) G (mu R) + G has a norm below 2^(e - 1) if that of G is below one."""
    return floor_log2(1 + (top + 2) * (top + 2)) + 2


@triton.jit
def _store_square_of_V(product, slots, stats, scratch, n, matrix, t, i, j, row, lower_tiles, side, TILE: tl.constexpr):
    """(V - 2 I)^2 and the terms of its moments."""
    unit = unit_of_V(tl.load(stats + NORM).to(tl.int32))
    size = _norm_exponent(slots + V_SQUARES * row, lower_tiles)
    square = product * (1 / unit) * (1 / unit)
    v = load_planes(buffer(scratch, matrix, V, side), unit, i, j, side, TILE)
    weight = tl.where(i == j, 1.0, 2.0)
    tl.store(slots + V_TRACES * row + t, total(v * identity(i, j, n, TILE)))
    tl.store(slots + V_CUBES * row + t, weight * total(v * square))
    tl.store(slots + V_FOURTHS * row + t, weight * total(square * square))
    store_symmetric(buffer(scratch, matrix, Q, side), square, power_of_two(14 - 2 * size), i, j, side, TILE)
    if t == 0:
        tl.store(stats + V_SIZE, size.to(tl.float32))


@triton.jit
def _store_right_side(
    product, GS, slots, stats, scratch, n, has_S, has_R, repetition,
    matrix, t, i, j, row, lower_tiles, side, TILE: tl.constexpr,
):  # fmt: skip
    """C = GS - R GR R first, if the inverse root has a cotangent, then C'; given (mu R) GR or (mu R) C."""
    is_first, follows = repetition == 0, (repetition == 1) & (has_R != 0)
    norm_exponent = tl.load(stats + NORM).to(tl.int32)
    top = tl.load(stats + TOP)
    size = 1
    if follows:
        size = _norm_exponent(slots + C_SQUARES * row, lower_tiles)
    else:
        top = _top(slots, n, row, lower_tiles)
    growth = _sandwich_exponent(top)
    product *= power_of_two(norm_exponent + size - 13) / unit_of_V(norm_exponent)
    target = buffer(scratch, matrix, C, side)
    if is_first:
        unit, cotangent_unit = tl.load(stats + RESULT_UNIT).to(tl.int32), tl.load(stats + COTANGENT_UNIT).to(tl.int32)
        c = -sandwich_factor(tl.load(stats + MU), cotangent_unit - unit) * product
        if has_S != 0:
            c += times_power_of_two(load_symmetric(GS + matrix * n * n, i, j, n, n, 1, TILE), -unit)
        tl.store(slots + C_SQUARES * row + t, tl.where(i == j, 1.0, 2.0) * total(c * c))
        store_symmetric(target, c, power_of_two(14 - growth), i, j, side, TILE)
    else:
        unit = tl.where(follows, power_of_two(14 - growth), UNIT_G)
        c = load_planes(target, unit, i, j, side, TILE) + product
        store_symmetric(target, c, power_of_two(14 - growth - size), i, j, side, TILE)
        if t == 0:
            tl.store(stats + C_SIZE, (growth + size).to(tl.float32))
    if (t == 0) & (not follows):
        tl.store(stats + TOP, top)


@triton.jit
def _should_run(phase, repetition, top):
    """Whether a matrix needs a repeated phase."""
    p, _, _, _, error = initial_inverse(top)
    newton = (phase == NEWTON) | (phase == NEWTON_RESIDUAL)
    double = (phase == DOUBLE_LEFT) | (phase == DOUBLE)
    factor = _factor(p, tl.where(double, repetition, 0))
    return ((not newton) | (repetition < _newton_count(error))) & ((not double) | (factor * factor > TOLERANCE))


@triton.jit(do_not_specialize=["n", "has_S", "has_R", "phase", "repetition"])
def gradient_product_kernel(
    GS, scratch, sums, stats, n, depth, has_S, has_R, phase, repetition,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One phase for all matrices that need it."""
    tile_rows = side // TILE
    row, lower_tiles = tile_rows * tile_rows, tile_rows * (tile_rows + 1) // 2
    matrix, t = matrix_and_tile(tiles_of_phase(phase, repetition, tile_rows), phase % 2 == 0)
    slots, stats = sums + matrix * (SUM_ROWS * row), stats + matrix * STATS
    left_phase = (phase == SANDWICH_LEFT) | (phase == TERMS_LEFT) | (phase == DOUBLE_LEFT)
    # What follows all tiles of a left factor: the square of V or F, or all tiles with H.
    is_second = left_phase & (t >= row)
    squares = is_second & (phase != TERMS_LEFT)
    t = tl.where(is_second, t - row, t)
    lower = squares | (not left_phase)
    i, j = tile_index(t, lower, tile_rows)

    running = tl.load(stats + STATE) == RUNNING
    top = 1.0
    if running & (phase > SANDWICH_RIGHT):
        top = tl.load(stats + TOP)
        running = _should_run(phase, repetition, top)
    p, k0, k1, k2, error = initial_inverse(top)
    inverse = _inverse_buffer(tl.where(phase <= NEWTON_RESIDUAL, repetition, _newton_count(error)))
    doublings = tl.where((phase == DOUBLE_LEFT) | (phase == DOUBLE), repetition, 0)
    factor, factor_bound = _factor_buffer(doublings), _factor(p, doublings + 1)
    if squares & (phase == DOUBLE_LEFT):
        running = running & (factor_bound * factor_bound > TOLERANCE)
    if running:
        norm_exponent = tl.load(stats + NORM).to(tl.int32)
        unit_V, unit_K = unit_of_V(norm_exponent), power_of_two(12 + floor_log2(2 + p))
        size = tl.where(phase > START_INVERSE, tl.load(stats + C_SIZE), 0.0).to(tl.int32)
        unit_KC, unit_X = power_of_two(14 - size + floor_log2(2 + p)), unit_of_X(size, p)
        left = tl.where(phase == SANDWICH_LEFT, MU_R, tl.where(phase == START_INVERSE, V, inverse))
        left = tl.where((phase == SANDWICH_RIGHT) | (phase == TERMS) | (phase == DOUBLE), T, left)
        left = tl.where((phase == NEWTON_RESIDUAL) | (squares & (phase == SANDWICH_LEFT)), V, left)
        left = tl.where(is_second & (phase == TERMS_LEFT), V, tl.where(phase == DOUBLE_LEFT, factor, left))
        right = tl.where(left_phase, C, tl.where(phase == SANDWICH_RIGHT, MU_R, inverse))
        right = tl.where(phase == START_INVERSE, Q, tl.where(phase == NEWTON, W, right))
        right = tl.where(squares, left, tl.where(phase == DOUBLE, factor, right))
        product = product_tile(
            buffer(scratch, matrix, left, side), buffer(scratch, matrix, right, side),
            buffer(scratch, matrix, HC, side), buffer(scratch, matrix, V, side),
            i, j, depth, tl.where(phase == TERMS, 2 * depth, depth), side, TILE, DEPTH,
        )  # fmt: skip
        if phase == SANDWICH_LEFT:
            if squares:
                _store_square_of_V(
                    product, slots, stats, scratch, n, matrix, t, i, j, row, lower_tiles, side, TILE
                )  # fmt: skip
            else:
                unit, size = UNIT_G, 1
                if repetition != 0:
                    size = _norm_exponent(slots + C_SQUARES * row, lower_tiles)
                    unit = power_of_two(14 - _sandwich_exponent(tl.load(stats + TOP)))
                product *= (1 / unit) * (1 / unit_V)
                store_planes(
                    buffer(scratch, matrix, T, side), product, power_of_two(13 - norm_exponent - size), i, j, side, TILE
                )  # fmt: skip
        elif phase == SANDWICH_RIGHT:
            _store_right_side(
                product, GS, slots, stats, scratch, n, has_S, has_R, repetition,
                matrix, t, i, j, row, lower_tiles, side, TILE,
            )  # fmt: skip
        elif phase == START_INVERSE:
            unit_Q = power_of_two(14 - 2 * tl.load(stats + V_SIZE).to(tl.int32))
            v = load_planes(buffer(scratch, matrix, V, side), unit_V, i, j, side, TILE)
            q = load_planes(buffer(scratch, matrix, Q, side), unit_Q, i, j, side, TILE)
            eye = identity(i, j, n, TILE)
            k = k0 * eye + (k1 * v + k2 * q)
            w = eye - (2 + p) * k - (k0 * v + k1 * q + k2 * (product * (1 / unit_V) * (1 / unit_Q)))
            store_symmetric(buffer(scratch, matrix, K, side), k, unit_K, i, j, side, TILE)
            store_symmetric(buffer(scratch, matrix, W, side), w, UNIT, i, j, side, TILE)
        elif phase == NEWTON:
            error = _newton_error(error, repetition)
            k = load_planes(buffer(scratch, matrix, inverse, side), unit_K, i, j, side, TILE)
            k = (2 / (2 - error * error)) * (k + product * ((1 / UNIT) * (1 / unit_K)))
            store_symmetric(buffer(scratch, matrix, _inverse_buffer(repetition + 1), side), k, unit_K, i, j, side, TILE)
        elif phase == NEWTON_RESIDUAL:
            k = load_planes(buffer(scratch, matrix, inverse, side), unit_K, i, j, side, TILE)
            w = identity(i, j, n, TILE) - (2 + p) * k - product * ((1 / unit_V) * (1 / unit_K))
            store_symmetric(buffer(scratch, matrix, W, side), w, UNIT, i, j, side, TILE)
        elif phase == INVERSE_SQUARE:
            k = load_planes(buffer(scratch, matrix, inverse, side), unit_K, i, j, side, TILE)
            product *= (1 / unit_K) * (1 / unit_K)
            f = identity(i, j, n, TILE) - 4 * p * (k - p * product)
            store_symmetric(buffer(scratch, matrix, V, side), k - 2 * p * product, unit_K, i, j, side, TILE)
            store_symmetric(buffer(scratch, matrix, Q, side), f, UNIT, i, j, side, TILE)
        elif phase == TERMS_LEFT:
            product *= power_of_two(size - 14) * (1 / unit_K)
            target = tl.where(is_second, HC, T)
            store_planes(buffer(scratch, matrix, target, side), product, unit_KC, i, j, side, TILE)
        elif phase == DOUBLE_LEFT:
            if squares:
                product *= 1 / (UNIT * UNIT)
                target = _factor_buffer(repetition + 1)
                store_symmetric(buffer(scratch, matrix, target, side), product, UNIT, i, j, side, TILE)
            else:
                product *= (1 / UNIT) * (1 / unit_X)
                store_planes(buffer(scratch, matrix, T, side), product, unit_X, i, j, side, TILE)
        else:
            X = buffer(scratch, matrix, C, side)
            if phase == TERMS:
                x = product * ((1 / unit_KC) * (1 / unit_K))
            else:
                x = load_planes(X, unit_X, i, j, side, TILE) + product * ((1 / UNIT) * (1 / unit_X))
            if i == j:
                tl.store(slots + X_TRACES * row + i, total(x * identity(i, j, n, TILE)))
            store_symmetric(X, x, unit_X, i, j, side, TILE)
