"""Before and after the products of the gradient: the preconditioned equation in its units, and the result.

With V = S/mu + mu R and C' = C + (mu R) C (mu R), S X + X S = C is V X + X V = C'/mu; see ``on_chip.gradient``. Sizes
are kept as exponents beside matrices of moderate size, so that nothing leaves the range of float16 or float32 where the
gradient does not.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import initial_inverse
from ..primitives import total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, sandwich_unit, store_result
from .roots_input import FAILED, RUNNING, ZERO
from .tiles import (
    buffer,
    frobenius_norm,
    load_planes,
    lower_count,
    matrix_and_tile,
    row_of_slots,
    store_tile,
    store_tile_norm,
    sum_slots,
    tile_index,
)

SUM_ROWS = tl.constexpr(14)  # of slots per matrix: two each for the norms of S, R, GS and GR, then
V_SQUARES = tl.constexpr(8)
V_TRACES = tl.constexpr(9)
V_CUBES = tl.constexpr(10)
V_FOURTHS = tl.constexpr(11)
C_SQUARES = tl.constexpr(12)
X_TRACES = tl.constexpr(13)

STATS = tl.constexpr(16)  # numbers per matrix
STATE = tl.constexpr(0)
MU = tl.constexpr(1)
RESULT_UNIT = tl.constexpr(2)  # exponents of C, of the cotangent stored first, of the norm of mu R, and of C'
COTANGENT_UNIT = tl.constexpr(3)
NORM = tl.constexpr(4)
C_SIZE = tl.constexpr(5)
V_SIZE = tl.constexpr(6)
TOP = tl.constexpr(7)  # bound of the largest eigenvalue of V - 2 I

V = tl.constexpr(0)  # buffers
MU_R = tl.constexpr(1)
C = tl.constexpr(2)
UNIT_G = tl.constexpr(8192.0)  # of the cotangent, whose norm is then 1 to 2


@triton.jit
def unit_of_V(norm_exponent):
    """The unit of V - 2 I and of mu R, whose norms are at most 2^(exponent + 2)."""
    return power_of_two(13 - norm_exponent)


@triton.jit
def unit_of_X(size_exponent, p):
    """The unit of X/(2 p), at most C'/(8 p), given a bound 2^size_exponent of C'."""
    return power_of_two(14 - size_exponent + floor_log2(p) + 2)


@triton.jit(do_not_specialize=["n"])
def norms_kernel(S, R, GS, GR, sums, n, side, TILE: tl.constexpr):
    """The terms of the norms: one program per tile of each of the four matrices."""
    tile_rows, lower_tiles, row = side // TILE, lower_count(side, TILE), row_of_slots(side)
    matrix, t = matrix_and_tile(4 * lower_tiles, False)
    which, t = t // lower_tiles, t % lower_tiles
    i, j = tile_index(t, True, tile_rows)
    source = tl.where(which == 0, S, tl.where(which == 1, R, tl.where(which == 2, GS, GR)))
    x = load_symmetric(source + matrix * n * n, i, j, n, n, 1, TILE)
    slots = sums + matrix * (SUM_ROWS * row) + 2 * which * row
    store_tile_norm(slots, t, row, x, tl.where(i == j, 1.0, 2.0))


@triton.jit(do_not_specialize=["n", "has_S", "has_R"])
def precondition_kernel(S, R, GS, GR, scratch, sums, stats, n, has_S, has_R, side, TILE: tl.constexpr):
    """V - 2 I, mu R, and the cotangent of the inverse root, or else of the root, in its unit: one program per tile of
    each."""
    tile_rows, lower_tiles, row = side // TILE, lower_count(side, TILE), row_of_slots(side)
    matrix, t = matrix_and_tile(3 * lower_tiles, True)
    which, t = t // lower_tiles, t % lower_tiles
    i, j = tile_index(t, True, tile_rows)
    offset = matrix * n * n
    slots = sums + matrix * (SUM_ROWS * row)
    norm, exponent = frobenius_norm(slots, row, lower_tiles)
    inverse_norm, inverse_exponent = frobenius_norm(slots + 2 * row, row, lower_tiles)
    # The norms of S/mu and of mu R are the same with this mu.
    mu = tl.sqrt(times_power_of_two(norm / inverse_norm, exponent - inverse_exponent))
    norm_exponent = floor_log2(tl.sqrt(times_power_of_two(norm * inverse_norm, exponent + inverse_exponent)))
    usable = (norm > 0) & (exponent < 128) & (inverse_exponent < 128) & (mu > 0) & (mu < float("inf"))
    first, first_exponent = frobenius_norm(slots + tl.where(has_R != 0, 6, 4) * row, row, lower_tiles)
    cotangent_unit = floor_log2(first) + first_exponent
    if usable:
        # mu R, to which V adds S/mu; a cotangent takes the place of S.
        source = tl.where(which == V, S, tl.where(has_R != 0, GR, GS))
        x = load_symmetric(source + offset, i, j, tl.where(which == MU_R, 0, n), n, 1, TILE)
        x = times_power_of_two(x, tl.where(which == C, -cotangent_unit, 0)) * tl.where(which == V, 1 / mu, 1.0)
        x += mu * load_symmetric(R + offset, i, j, tl.where(which == C, 0, n), n, 1, TILE)
        if which == V:
            x -= 2 * identity(i, j, n, TILE)
            tl.store(slots + V_SQUARES * row + t, tl.where(i == j, 1.0, 2.0) * total(x * x))
        target = buffer(scratch, matrix, which, side)
        unit = tl.where(which == C, UNIT_G, unit_of_V(norm_exponent))
        store_tile(target, target, x, unit, i, j, True, False, side, TILE)
    if (t == 0) & (which == V):
        result_unit = cotangent_unit
        if has_R != 0:
            result_unit = sandwich_unit(mu, cotangent_unit)
            if has_S != 0:
                other, other_exponent = frobenius_norm(slots + 4 * row, row, lower_tiles)
                result_unit = tl.maximum(result_unit, floor_log2(other) + other_exponent)
        stats += matrix * STATS
        tl.store(stats + STATE, tl.where(usable, RUNNING, tl.where(norm == 0, ZERO, FAILED)))
        tl.store(stats + MU, mu)
        tl.store(stats + RESULT_UNIT, result_unit.to(tl.float32))
        tl.store(stats + COTANGENT_UNIT, cotangent_unit.to(tl.float32))
        tl.store(stats + NORM, norm_exponent.to(tl.float32))


@triton.jit(do_not_specialize=["n", "product_rows"])
def store_gradient_kernel(out, scratch, sums, stats, n, ridge, product_rows, side, TILE: tl.constexpr):
    """The gradient with the ridge's share: zero where the root is, NaN where that is not finite.

    ``product_rows`` is the number of slots of its trace.
    """
    tile_rows, row = side // TILE, row_of_slots(side)
    matrix, t = matrix_and_tile(lower_count(side, TILE), False)
    i, j = tile_index(t, True, tile_rows)
    stats += matrix * STATS
    state = tl.load(stats + STATE)
    if state == RUNNING:
        p, _, _, _, _ = initial_inverse(tl.load(stats + TOP))
        size = tl.load(stats + C_SIZE).to(tl.int32)
        x = load_planes(buffer(scratch, matrix, C, side), True, i, j, side, TILE) * (1 / unit_of_X(size, p))
        if ridge != 0:
            trace = sum_slots(sums + matrix * (SUM_ROWS * row) + X_TRACES * row, product_rows)
            x += (ridge / n) * trace * identity(i, j, n, TILE)
        x = times_power_of_two((2 * p / tl.load(stats + MU)) * x, tl.load(stats + RESULT_UNIT).to(tl.int32))
    else:
        x = tl.where(state == ZERO, 0.0, float("nan")) + tl.zeros((TILE, TILE), tl.float32)
    store_result(out + matrix * n * n, x, i, j, n, TILE)
