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
    matrix_and_tile,
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


@triton.jit
def _store(A, x, unit, i, j, side, TILE: tl.constexpr):
    store_tile(A, A, x, unit, i, j, True, False, side, TILE)


@triton.jit(do_not_specialize=["n", "has_S", "has_R"])
def norms_kernel(S, R, GS, GR, sums, n, has_S, has_R, side, TILE: tl.constexpr):
    tile_rows = side // TILE
    row = tile_rows * tile_rows
    matrix, t = matrix_and_tile(tile_rows * (tile_rows + 1) // 2, False)
    i, j = tile_index(t, True, tile_rows)
    offset, weight = matrix * n * n, tl.where(i == j, 1.0, 2.0)
    slots = sums + matrix * (SUM_ROWS * row)
    store_tile_norm(slots, t, row, load_symmetric(S + offset, i, j, n, n, 1, TILE), weight)
    store_tile_norm(slots + 2 * row, t, row, load_symmetric(R + offset, i, j, n, n, 1, TILE), weight)
    if has_S != 0:
        store_tile_norm(slots + 4 * row, t, row, load_symmetric(GS + offset, i, j, n, n, 1, TILE), weight)
    if has_R != 0:
        store_tile_norm(slots + 6 * row, t, row, load_symmetric(GR + offset, i, j, n, n, 1, TILE), weight)


@triton.jit(do_not_specialize=["n", "has_S", "has_R"])
def precondition_kernel(S, R, GS, GR, scratch, sums, stats, n, has_S, has_R, side, TILE: tl.constexpr):
    """V - 2 I, mu R, and the cotangent of the inverse root, or else of the root, in its unit."""
    tile_rows = side // TILE
    row, lower_tiles = tile_rows * tile_rows, tile_rows * (tile_rows + 1) // 2
    matrix, t = matrix_and_tile(lower_tiles, True)
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
    result_unit = cotangent_unit
    if has_R != 0:
        result_unit = sandwich_unit(mu, cotangent_unit)
        if has_S != 0:
            other, other_exponent = frobenius_norm(slots + 4 * row, row, lower_tiles)
            result_unit = tl.maximum(result_unit, floor_log2(other) + other_exponent)
    if usable:
        r = mu * load_symmetric(R + offset, i, j, n, n, 1, TILE)
        v = (1 / mu) * load_symmetric(S + offset, i, j, n, n, 1, TILE) + r - 2 * identity(i, j, n, TILE)
        c = load_symmetric(tl.where(has_R != 0, GR, GS) + offset, i, j, n, n, 1, TILE)
        unit = unit_of_V(norm_exponent)
        _store(buffer(scratch, matrix, V, side), v, unit, i, j, side, TILE)
        _store(buffer(scratch, matrix, MU_R, side), r, unit, i, j, side, TILE)
        c = times_power_of_two(c, -cotangent_unit)
        _store(buffer(scratch, matrix, C, side), c, UNIT_G, i, j, side, TILE)
        tl.store(slots + V_SQUARES * row + t, tl.where(i == j, 1.0, 2.0) * total(v * v))
    if t == 0:
        stats += matrix * STATS
        tl.store(stats + STATE, tl.where(usable, RUNNING, tl.where(norm == 0, ZERO, FAILED)))
        tl.store(stats + MU, mu)
        tl.store(stats + RESULT_UNIT, result_unit.to(tl.float32))
        tl.store(stats + COTANGENT_UNIT, cotangent_unit.to(tl.float32))
        tl.store(stats + NORM, norm_exponent.to(tl.float32))


@triton.jit(do_not_specialize=["n"])
def store_gradient_kernel(out, scratch, sums, stats, n, ridge, side, TILE: tl.constexpr):
    """The gradient with the ridge's share: zero where the root is, NaN where that is not finite."""
    tile_rows = side // TILE
    row = tile_rows * tile_rows
    matrix, t = matrix_and_tile(tile_rows * (tile_rows + 1) // 2, False)
    i, j = tile_index(t, True, tile_rows)
    stats += matrix * STATS
    state = tl.load(stats + STATE)
    if state == RUNNING:
        p, _, _, _, _ = initial_inverse(tl.load(stats + TOP))
        size = tl.load(stats + C_SIZE).to(tl.int32)
        x = load_planes(buffer(scratch, matrix, C, side), True, i, j, side, TILE) * (1 / unit_of_X(size, p))
        if ridge != 0:
            trace = sum_slots(sums + matrix * (SUM_ROWS * row) + X_TRACES * row, tile_rows)
            x += (ridge / n) * trace * identity(i, j, n, TILE)
        x = times_power_of_two((2 * p / tl.load(stats + MU)) * x, tl.load(stats + RESULT_UNIT).to(tl.int32))
    else:
        x = tl.where(state == ZERO, 0.0, float("nan")) + tl.zeros((TILE, TILE), tl.float32)
    store_result(out + matrix * n * n, x, i, j, n, TILE)
