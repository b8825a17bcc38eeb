"""A tile of every product of the gradient.

V X + X V = C'/mu, preconditioned, has the solution X = 2 p (K C' K + H C' H + F (K C' K + H C' H) F + ...)/mu with
K = (V + p)^-1, H = (I - 2 p K) K and F = (I - 2 p K)^2; every term doubles their number. K comes from Newton's
iteration, from a quadratic polynomial of V on.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, lower_tile_count, sandwich_factor
from .gradient_bounds import newton_error
from .gradient_input import C_SQUARES, MU_R, V_CUBES, V_FOURTHS, V_TRACES, X_TRACES, C, V, unit_of_V, unit_of_X
from .tiles import buffer, load_planes, product_tile, store_tile, tile_index

SANDWICH_LEFT = tl.constexpr(0)  # phases
SANDWICH_RIGHT = tl.constexpr(1)
START_INVERSE = tl.constexpr(2)
NEWTON_RESIDUAL = tl.constexpr(3)
NEWTON = tl.constexpr(4)
INVERSE_SQUARE = tl.constexpr(5)
TERMS_LEFT = tl.constexpr(6)
TERMS = tl.constexpr(7)
DOUBLE_LEFT = tl.constexpr(8)
DOUBLE = tl.constexpr(9)
FINISHED = tl.constexpr(10)

T = tl.constexpr(3)  # buffers; X is in that of C
Q = tl.constexpr(4)  # V^2, later F
K = tl.constexpr(5)
W = tl.constexpr(6)
HC = tl.constexpr(7)
UNIT = tl.constexpr(8192.0)  # of the residual of K, and of F


@triton.jit
def next_phase(phase, repetition, has_R, iterations, doublings) -> tuple:
    """What follows, given the number of Newton's iterations and of doublings, and its repetition."""
    again = (phase == SANDWICH_RIGHT) & (repetition == 0)
    again |= (phase == NEWTON) & (repetition + 1 < iterations)
    again |= (phase == DOUBLE) & (repetition + 1 < doublings)
    follows = tl.where(phase == START_INVERSE, NEWTON, phase + 1)
    ends = (phase == DOUBLE) | ((phase == TERMS) & (doublings == 0))
    pair = (phase == SANDWICH_LEFT) | (phase == NEWTON_RESIDUAL) | (phase == DOUBLE_LEFT)
    count = tl.where(again, repetition + 1, tl.where(pair, repetition, 0))
    # Without a cotangent of the inverse root there is one sandwich only, the second.
    count = tl.where((phase == SANDWICH_LEFT) & (has_R == 0), 1, count)
    return tl.where(again, phase - 1, tl.where(ends, FINISHED, follows)), count


@triton.jit
def tiles_of_phase(phase, repetition, doublings, tile_rows):
    """Tiles of the first matrix, then of those that it also stores: V^2, K, F or its square, where they are needed."""
    every, lower = tile_rows * tile_rows, tile_rows * (tile_rows + 1) // 2
    is_left = (phase == SANDWICH_LEFT) | (phase == DOUBLE_LEFT)
    tiles = tl.where(phase == TERMS_LEFT, 2 * every, tl.where(is_left, every, lower))
    also = ((phase == SANDWICH_LEFT) & (repetition == 0)) | (phase == START_INVERSE)
    also |= (phase == TERMS_LEFT) & (doublings > 0)
    also |= (phase == DOUBLE_LEFT) & (repetition + 1 < doublings)
    return tiles + tl.where(also, lower, 0)


@triton.jit
def _inverse_buffer(count):
    """Where K is after so many iterations; mu R is no longer needed."""
    return tl.where(count % 2 == 0, K, MU_R)


@triton.jit
def _factor_buffer(doublings):
    """Where F is after so many doublings; H, which replaced V, is no longer needed after the first terms."""
    return tl.where(doublings % 2 == 0, Q, V)


@triton.jit
def gradient_tile(
    GS, scratch, slots, row, t, n, depth, has_S, phase, repetition, iterations,
    p, k0, k1, k2, error, mu, cotangent_unit, result_unit, norm_exponent, V_size, growth, size, unit_C,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Store a tile of a phase: a product, and multiples of two matrices and of the identity.

    Some phases store two matrices: tiles that are "also" stored are those of the second one. ``p`` to ``error`` are of
    ``initial_inverse``. V has a norm below 2^V_size and the matrix between both factors mu R below 2^size, in unit_C;
    the sandwich multiplies that by less than 2^growth.
    """
    tile_rows, lower_tiles = side // TILE, lower_tile_count(side, TILE)
    every = tile_rows * tile_rows
    is_left = (phase == SANDWICH_LEFT) | (phase == TERMS_LEFT) | (phase == DOUBLE_LEFT)
    is_H = (phase == TERMS_LEFT) & (t >= every) & (t < 2 * every)
    also = t >= tl.where(phase == TERMS_LEFT, 2 * every, tl.where(is_left, every, lower_tiles))
    t -= tl.where(also & (phase == TERMS_LEFT), 2 * every, tl.where(is_H | (also & is_left), every, 0))
    t -= tl.where(also & (phase == START_INVERSE), lower_tiles, 0)
    symmetric = also | (not is_left)
    i, j = tile_index(t, symmetric, tile_rows)

    unit_V, unit_K = unit_of_V(norm_exponent), power_of_two(12 + floor_log2(2 + p))
    C_exponent = growth + size
    unit_KC, unit_X = power_of_two(14 - C_exponent + floor_log2(2 + p)), unit_of_X(C_exponent, p)
    inverse = _inverse_buffer(tl.where(phase <= NEWTON, repetition, iterations))
    factor = _factor_buffer(repetition)

    of_product, of_first, of_second, of_identity, unit = 1.0, 0.0, 0.0, 0.0, unit_X
    left, right, target, first, second = T, inverse, C, C, V
    extent, weighted = depth, row < 0
    if phase == SANDWICH_LEFT:
        if also:
            left, right, target, first = V, V, Q, V
            of_product, of_first = (1 / unit_V) * (1 / unit_V), 1 / unit_V
            unit, weighted = power_of_two(14 - 2 * V_size), row > 0
        else:
            left, right, target = MU_R, C, T
            of_product, unit = (1 / unit_C) * (1 / unit_V), power_of_two(13 - norm_exponent - size)
    elif phase == SANDWICH_RIGHT:
        right = MU_R
        of_product = power_of_two(norm_exponent + size - 13) * (1 / unit_V)
        if repetition == 0:
            # C = GS - R GR R
            of_product *= -sandwich_factor(mu, cotangent_unit - result_unit)
            unit = power_of_two(14 - growth)
        else:
            # C' = C + (mu R) C (mu R)
            of_first, unit = 1 / unit_C, power_of_two(14 - C_exponent)
    elif phase == START_INVERSE:
        left, right, first, second, target = V, Q, V, Q, tl.where(also, K, W)
        unit_Q = power_of_two(14 - 2 * V_size)
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
        buffer(scratch, left, side), buffer(scratch, right, side), buffer(scratch, HC, side), buffer(scratch, V, side),
        i, j, depth, extent, side, TILE, DEPTH,
    )  # fmt: skip
    product *= of_product
    weight = tl.where(i == j, 1.0, 2.0)
    eye = identity(i, j, n, TILE)
    x = of_first * load_planes(buffer(scratch, first, side), of_first != 0, i, j, side, TILE)
    if weighted:
        tl.store(slots + V_TRACES * row + t, total(x * eye))
        tl.store(slots + V_CUBES * row + t, weight * total(x * product))
        tl.store(slots + V_FOURTHS * row + t, weight * total(product * product))
        x *= 0
    out = of_second * load_planes(buffer(scratch, second, side), of_second != 0, i, j, side, TILE)
    out += x + product + of_identity * eye
    if (phase == SANDWICH_RIGHT) & (repetition == 0):
        if has_S != 0:
            out += times_power_of_two(load_symmetric(GS, i, j, n, n, 1, TILE), -result_unit)
        tl.store(slots + C_SQUARES * row + t, weight * total(out * out))
    if ((phase == TERMS) | (phase == DOUBLE)) & (i == j):
        tl.store(slots + X_TRACES * row + i, total(out * eye))
    A = buffer(scratch, target, side)
    store_tile(A, A, out, unit, i, j, symmetric, False, side, TILE)
