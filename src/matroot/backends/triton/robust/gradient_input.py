"""Before and after the products of the gradient: the preconditioned equation in its units, and the result.

With V = S/mu + mu R and C' = C + (mu R) C (mu R), S X + X S = C is V X + X V = C'/mu; see ``on_chip.gradient``. Sizes
are kept as exponents beside matrices of moderate size, so that nothing leaves the range of float16 or float32 where the
gradient does not.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from ..tiled.tiles import identity, load_symmetric, lower_tile_count, sandwich_unit, store_result
from .roots_input import FAILED, RUNNING, ZERO
from .tiles import buffer, frobenius_norm, load_planes, store_tile, store_tile_norm, tile_index

SUM_ROWS = tl.constexpr(14)  # of slots: two each for the norms of S, R, GS and GR, then
V_SQUARES = tl.constexpr(8)
V_TRACES = tl.constexpr(9)
V_CUBES = tl.constexpr(10)
V_FOURTHS = tl.constexpr(11)
C_SQUARES = tl.constexpr(12)
X_TRACES = tl.constexpr(13)

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


@triton.jit(noinline=True)
def norm_tile(S, R, GS, GR, slots, row, t, n, has_S, tile_rows, TILE: tl.constexpr):
    """The terms of the norms: tiles of S, of R, and of the cotangents that there are."""
    tl.debug_barrier()
    lower_tiles = tile_rows * (tile_rows + 1) // 2
    which = t // lower_tiles
    which += tl.where((which == 2) & (has_S == 0), 1, 0)
    t = t % lower_tiles
    i, j = tile_index(t, True, tile_rows)
    source = tl.where(which == 0, S, tl.where(which == 1, R, tl.where(which == 2, GS, GR)))
    x = load_symmetric(source, i, j, n, n, 1, TILE)
    store_tile_norm(slots + 2 * which * row, t, row, x, tl.where(i == j, 1.0, 2.0))
    tl.debug_barrier()


@triton.jit
def equation_scales(slots, row, has_S, has_R, tiles) -> tuple:
    """mu; exponents of the units of C and of the cotangent stored first, and of the norm of mu R; and the state."""
    norm, exponent = frobenius_norm(slots, row, tiles)
    inverse_norm, inverse_exponent = frobenius_norm(slots + 2 * row, row, tiles)
    # The norms of S/mu and of mu R are the same with this mu.
    mu = tl.sqrt(times_power_of_two(norm / inverse_norm, exponent - inverse_exponent))
    norm_exponent = floor_log2(tl.sqrt(times_power_of_two(norm * inverse_norm, exponent + inverse_exponent)))
    usable = (norm > 0) & (exponent < 128) & (inverse_exponent < 128) & (mu > 0) & (mu < float("inf"))
    first, first_exponent = frobenius_norm(slots + tl.where(has_R != 0, 6, 4) * row, row, tiles)
    cotangent_unit = floor_log2(first) + first_exponent
    result_unit = cotangent_unit
    if has_R != 0:
        result_unit = sandwich_unit(mu, cotangent_unit)
        if has_S != 0:
            other, other_exponent = frobenius_norm(slots + 4 * row, row, tiles)
            result_unit = tl.maximum(result_unit, floor_log2(other) + other_exponent)
    state = tl.where(usable, RUNNING, tl.where(norm == 0, ZERO, FAILED))
    return mu, result_unit, cotangent_unit, norm_exponent, state


@triton.jit(noinline=True)
def precondition_tile(
    S, R, G, scratch, slots, row, t, n, mu, cotangent_unit, norm_exponent, side, TILE: tl.constexpr
):  # fmt: skip
    """A tile of V - 2 I, of mu R, or of the cotangent in its unit."""
    tl.debug_barrier()
    lower_tiles = lower_tile_count(side, TILE)
    which = t // lower_tiles
    t = t % lower_tiles
    i, j = tile_index(t, True, side // TILE)
    # mu R, to which V adds S/mu; a cotangent takes the place of S.
    x = tl.zeros((TILE, TILE), tl.float32)
    for is_R in range(2):  # not twice the code
        source = tl.where(is_R == 1, R, tl.where(which == V, S, G))
        rows = tl.where(which == tl.where(is_R == 1, C, MU_R), 0, n)
        part = load_symmetric(source, i, j, rows, n, 1, TILE)
        part = times_power_of_two(part, tl.where(which == C, -cotangent_unit, 0))
        x += part * tl.where(is_R == 1, mu, tl.where(which == V, 1 / mu, 1.0))
    if which == V:
        x -= 2 * identity(i, j, n, TILE)
        tl.store(slots + V_SQUARES * row + t, tl.where(i == j, 1.0, 2.0) * total(x * x))
    target = buffer(scratch, which, side)
    unit = tl.where(which == C, UNIT_G, unit_of_V(norm_exponent))
    store_tile(target, target, x, unit, i, j, True, False, side, TILE)
    tl.debug_barrier()


@triton.jit(noinline=True)
def result_tile(
    out, scratch, t, n, state, of_planes, ridge_term, of_result, unit, side, TILE: tl.constexpr
):  # fmt: skip
    """A tile of the gradient with the ridge's share: zero where the root is, NaN where that is not finite."""
    tl.debug_barrier()
    i, j = tile_index(t, True, side // TILE)
    if state == RUNNING:
        x = of_planes * load_planes(buffer(scratch, C, side), True, i, j, side, TILE)
        x = times_power_of_two(of_result * (x + ridge_term * identity(i, j, n, TILE)), unit)
    else:
        x = tl.where(state == ZERO, 0.0, float("nan")) + tl.zeros((TILE, TILE), tl.float32)
    store_result(out, x, i, j, n, TILE)
    tl.debug_barrier()
