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
from ..primitives import total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, sandwich_factor
from .gradient_bounds import (
    TOLERANCE,
    factor_bound,
    largest_eigenvalue,
    newton_count,
    newton_error,
    norm_exponent_of,
    sandwich_exponent,
)
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
    SMALL_TILE,
    buffer,
    load_planes,
    lower_count,
    matrix_and_tile,
    product_tile,
    row_of_slots,
    store_tile,
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


@triton.jit
def tiles_of_phase(phase, repetition, tile_rows):
    """The programs of a phase per matrix."""
    every, lower = tile_rows * tile_rows, tile_rows * (tile_rows + 1) // 2
    lowers = tl.where((phase == SANDWICH_LEFT) & (repetition != 0), 0, tl.where(phase == START_INVERSE, 2, 1))
    is_left = (phase == SANDWICH_LEFT) | (phase == DOUBLE_LEFT)
    return lowers * lower + tl.where(phase == TERMS_LEFT, 2, tl.where(is_left, 1, 0)) * every


@triton.jit
def _inverse_buffer(count):
    """Where K is after so many iterations; mu R is no longer needed."""
    return tl.where(count % 2 == 0, K, MU_R)


@triton.jit
def _factor_buffer(doublings):
    """Where F is after so many doublings; H, which replaced V, is no longer needed after the first terms."""
    return tl.where(doublings % 2 == 0, Q, V)


@triton.jit
def _should_run(phase, repetition, also, top):
    """Whether a matrix needs a phase, or what it also stores: F is needed if terms will be doubled."""
    p, _, _, _, error = initial_inverse(top)
    newton = (phase == NEWTON) | (phase == NEWTON_RESIDUAL)
    double = (phase == DOUBLE_LEFT) | (phase == DOUBLE)
    doublings = tl.where(double, repetition + tl.where(also, 1, 0), 0)
    bound = factor_bound(p, doublings)
    doubles = double | (also & (phase == TERMS_LEFT))
    return ((not newton) | (repetition < newton_count(error))) & ((not doubles) | (bound * bound > TOLERANCE))


@triton.jit
def _sandwich_sizes(slots, stats, n, has_R, phase, repetition, row, lower_tiles, small_tiles) -> tuple:
    """The bound of V - 2 I, and an exponent of a bound of the norm of the matrix between both factors mu R.

    In the phase that follows the moments of V the bound is computed, later it is known.
    """
    follows = (repetition == 1) & (has_R != 0)
    top, size = tl.load(stats + TOP, follows, 1.0), 1
    if follows:
        size = norm_exponent_of(slots + C_SQUARES * row, lower_tiles)
    elif phase == SANDWICH_RIGHT:
        top = largest_eigenvalue(slots, n, row, lower_tiles, small_tiles)
    return top, size, follows


@triton.jit(do_not_specialize=["n", "has_S", "has_R", "phase", "repetition"])
def gradient_product_kernel(
    GS, scratch, sums, stats, n, depth, has_S, has_R, phase, repetition,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One phase for all matrices that need it.

    A program stores one tile: a product, and multiples of two matrices and of the identity. Some phases store two
    matrices, by different programs: "also" those of the second one.
    """
    tile_rows = side // TILE
    every, row, lower_tiles = tile_rows * tile_rows, row_of_slots(side), lower_count(side, TILE)
    matrix, t = matrix_and_tile(tiles_of_phase(phase, repetition, tile_rows), phase % 2 == 0)
    slots, stats = sums + matrix * (SUM_ROWS * row), stats + matrix * STATS
    is_left = (phase == SANDWICH_LEFT) | (phase == TERMS_LEFT) | (phase == DOUBLE_LEFT)
    is_H = (phase == TERMS_LEFT) & (t >= every) & (t < 2 * every)
    also = t >= tl.where(phase == TERMS_LEFT, 2 * every, tl.where(is_left, every, lower_tiles))
    t -= tl.where(also & (phase == TERMS_LEFT), 2 * every, tl.where(is_H | (also & is_left), every, 0))
    t -= tl.where(also & (phase == START_INVERSE), lower_tiles, 0)
    symmetric = also | (not is_left)
    i, j = tile_index(t, symmetric, tile_rows)

    running = tl.load(stats + STATE) == RUNNING
    top = 1.0
    if running & (phase > SANDWICH_RIGHT):
        top = tl.load(stats + TOP)
        running = _should_run(phase, repetition, also, top)
    if running:
        p, k0, k1, k2, error = initial_inverse(top)
        norm_exponent = tl.load(stats + NORM).to(tl.int32)
        unit_V, unit_K = unit_of_V(norm_exponent), power_of_two(12 + floor_log2(2 + p))
        C_exponent = tl.load(stats + C_SIZE, phase > START_INVERSE, 0.0).to(tl.int32)
        unit_KC, unit_X = power_of_two(14 - C_exponent + floor_log2(2 + p)), unit_of_X(C_exponent, p)
        inverse = _inverse_buffer(tl.where(phase <= NEWTON_RESIDUAL, repetition, newton_count(error)))
        factor = _factor_buffer(repetition)

        of_product, of_first, of_second, of_identity, unit = 1.0, 0.0, 0.0, 0.0, unit_X
        left, right, target, first, second = T, inverse, C, C, V
        extent, weighted = depth, row < 0
        small_tiles = lower_count(side, SMALL_TILE)
        if phase == SANDWICH_LEFT:
            if also:
                left, right, target, first = V, V, Q, V
                size = norm_exponent_of(slots + V_SQUARES * row, small_tiles)
                of_product, of_first, unit = (1 / unit_V) * (1 / unit_V), 1 / unit_V, power_of_two(14 - 2 * size)
                weighted = row > 0
                if t == 0:
                    tl.store(stats + V_SIZE, size.to(tl.float32))
            else:
                top, size, follows = _sandwich_sizes(
                    slots, stats, n, has_R, phase, repetition, row, lower_tiles, small_tiles
                )
                left, right, target = MU_R, C, T
                unit_C = tl.where(follows, power_of_two(14 - sandwich_exponent(top)), UNIT_G)
                of_product, unit = (1 / unit_C) * (1 / unit_V), power_of_two(13 - norm_exponent - size)
        elif phase == SANDWICH_RIGHT:
            top, size, follows = _sandwich_sizes(
                slots, stats, n, has_R, phase, repetition, row, lower_tiles, small_tiles
            )
            right = MU_R
            growth = sandwich_exponent(top)
            of_product = power_of_two(norm_exponent + size - 13) * (1 / unit_V)
            if repetition == 0:
                # C = GS - R GR R
                result = tl.load(stats + RESULT_UNIT).to(tl.int32)
                cotangent = tl.load(stats + COTANGENT_UNIT).to(tl.int32)
                of_product *= -sandwich_factor(tl.load(stats + MU), cotangent - result)
                unit = power_of_two(14 - growth)
            else:
                # C' = C + (mu R) C (mu R)
                of_first = 1 / tl.where(follows, power_of_two(14 - growth), UNIT_G)
                unit = power_of_two(14 - growth - size)
                if t == 0:
                    tl.store(stats + C_SIZE, (growth + size).to(tl.float32))
            if (t == 0) & (not follows):
                tl.store(stats + TOP, top)
        elif phase == START_INVERSE:
            left, right, first, second, target = V, Q, V, Q, tl.where(also, K, W)
            unit_Q = power_of_two(14 - 2 * tl.load(stats + V_SIZE).to(tl.int32))
            least = tl.where(also, -1.0, 2 + p)  # K itself, or I - (V + p) K
            of_product = tl.where(also, 0.0, -k2 * (1 / unit_V) * (1 / unit_Q))
            of_first = (-least * k1 - tl.where(also, 0.0, k0)) * (1 / unit_V)
            of_second = (-least * k2 - tl.where(also, 0.0, k1)) * (1 / unit_Q)
            of_identity = tl.where(also, 0.0, 1.0) - least * k0
            unit = tl.where(also, unit_K, UNIT)
            extent = tl.where(also, 0, depth)
        elif phase == NEWTON:
            left, right, first, target = inverse, W, inverse, _inverse_buffer(repetition + 1)
            error = newton_error(error, repetition)
            gain = 2 / (2 - error * error)
            of_product, of_first, unit = gain * (1 / UNIT) * (1 / unit_K), gain * (1 / unit_K), unit_K
        elif phase == NEWTON_RESIDUAL:
            left, first, target = V, inverse, W
            of_product, of_first = -(1 / unit_V) * (1 / unit_K), -(2 + p) * (1 / unit_K)
            of_identity, unit = 1.0, UNIT
        elif phase == INVERSE_SQUARE:
            # H = K - 2 p K^2
            left, first, target = inverse, inverse, V
            of_product, of_first, unit = -2 * p * (1 / unit_K) * (1 / unit_K), 1 / unit_K, unit_K
        elif phase == TERMS_LEFT:
            if also:
                # F = I - 2 p (K + H)
                first, target, extent = inverse, Q, 0
                of_product, of_first, of_second = 0.0, -2 * p * (1 / unit_K), -2 * p * (1 / unit_K)
                of_identity, unit = 1.0, UNIT
            else:
                left, right, target = tl.where(is_H, V, inverse), C, tl.where(is_H, HC, T)
                of_product, unit = power_of_two(C_exponent - 14) * (1 / unit_K), unit_KC
        elif phase == TERMS:
            of_product, extent = (1 / unit_KC) * (1 / unit_K), 2 * depth
        elif phase == DOUBLE_LEFT:
            left, right, target = factor, tl.where(also, factor, C), tl.where(also, _factor_buffer(repetition + 1), T)
            of_product = tl.where(also, (1 / UNIT) * (1 / UNIT), (1 / UNIT) * (1 / unit_X))
            unit = tl.where(also, UNIT, unit_X)
        else:
            right = factor
            of_product, of_first = (1 / UNIT) * (1 / unit_X), 1 / unit_X

        product = product_tile(
            buffer(scratch, matrix, left, side), buffer(scratch, matrix, right, side),
            buffer(scratch, matrix, HC, side), buffer(scratch, matrix, V, side),
            i, j, depth, extent, side, TILE, DEPTH,
        )  # fmt: skip
        product *= of_product
        weight = tl.where(i == j, 1.0, 2.0)
        eye = identity(i, j, n, TILE)
        x = of_first * load_planes(buffer(scratch, matrix, first, side), of_first != 0, i, j, side, TILE)
        if weighted:
            tl.store(slots + V_TRACES * row + t, total(x * eye))
            tl.store(slots + V_CUBES * row + t, weight * total(x * product))
            tl.store(slots + V_FOURTHS * row + t, weight * total(product * product))
            x *= 0
        out = of_second * load_planes(buffer(scratch, matrix, second, side), of_second != 0, i, j, side, TILE)
        out += x + product + of_identity * eye
        if (phase == SANDWICH_RIGHT) & (repetition == 0):
            if has_S != 0:
                unit_exponent = tl.load(stats + RESULT_UNIT).to(tl.int32)
                out += times_power_of_two(load_symmetric(GS + matrix * n * n, i, j, n, n, 1, TILE), -unit_exponent)
            tl.store(slots + C_SQUARES * row + t, weight * total(out * out))
        if ((phase == TERMS) | (phase == DOUBLE)) & (i == j):
            tl.store(slots + X_TRACES * row + i, total(out * eye))
        A = buffer(scratch, matrix, target, side)
        store_tile(A, A, out, unit, i, j, symmetric, False, side, TILE)
