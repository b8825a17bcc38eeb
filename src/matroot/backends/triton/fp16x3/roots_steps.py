"""The products of the roots: one kernel, launched once for every product of the coupled iteration.

With A in its scale, Y -> (A/theta)^(1/2) and Z -> (A/theta)^(-1/2). A step computes E = I - Z Y, which is not symmetric
and must not be made so, U = E^2 + E/(2 RATIO), the correction D = D(E), and the symmetric parts of Y + Y D and Z + D Z.
Each matrix takes the steps that the sums over its tiles suggest:

- fast, at first, where it seems well-conditioned;
- Taylor's, if E is small, and then as the last one;
- a lift otherwise, which enlarges small eigenvalues of M = Z Y most;
- holds, three times, once eigenvalues that are still small are zero up to rounding: they stay what they are;
- none, if an eigenvalue of M is clearly negative. Then Y and Z of the step before are those of A + shift, with a shift
  that makes their eigenvalues positive. If it is larger than rounding explains, the matrix fails.

Multiples of the identity are kept out of factors, and added in float32.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import centred_eigenvalue_bound, eigenvalue_bound, suits_fast_path, total
from ..tiled.tiles import identity, store_result
from .roots_input import (
    CENTRE,
    MEAN,
    PROGRESS,
    PROGRESS_SIZE,
    RUNNING,
    SEEMS_EASY,
    SHIFT,
    SQUARE,
    STATE,
    STATS,
    STATUS,
    SUM_ROWS,
    THETA,
    UNIT_X,
    X,
    root_scale,
)
from .roots_progress import (
    FOURTH_POWER,
    LIFT_STEP,
    PAIR,
    ZERO_GAIN,
    growth,
    next_step,
    power_above,
    shift_for,
    store_next_progress,
    store_progress,
)
from .schedule import RATIO
from .tiles import (
    buffer,
    load_planes,
    lower_count,
    matrix_and_tile,
    product_tile,
    row_of_slots,
    store_tile,
    sum_slots,
    tile_index,
)

SQUARE_INPUT = tl.constexpr(0)  # phases
FIRST_STEP = tl.constexpr(1)
RESIDUAL = tl.constexpr(2)
RESIDUAL_SQUARE = tl.constexpr(3)
CORRECTION = tl.constexpr(4)
UPDATE = tl.constexpr(5)

E = tl.constexpr(4)  # buffers: after X and its square, and the pairs Y, Z in 0, 1 and 2, 3
U = tl.constexpr(5)
D = tl.constexpr(6)
D_TRANSPOSED = tl.constexpr(7)
UNIT = tl.constexpr(2048.0)  # of all but X
LINEAR = tl.constexpr(0.5 / RATIO)


@triton.jit
def tiles_of_phase(phase, tile_rows):
    """The programs of a phase per matrix."""
    lower = tile_rows * (tile_rows + 1) // 2
    both = (phase == FIRST_STEP) | (phase == UPDATE)
    return tl.where(both, 2 * lower, tl.where(phase == SQUARE_INPUT, lower, tile_rows * tile_rows))


@triton.jit
def _first_coefficients(slots, stats, table, n, row, lower_tiles) -> tuple:
    """Those of Z as a polynomial of X = A less its centre; the centre relative to theta, theta, and the gain of Z at
    zero; whether A seems well-conditioned. From the moments of X."""
    centre, mean = tl.load(stats + CENTRE), tl.load(stats + MEAN)
    x2, x3 = sum_slots(slots, lower_tiles) / n, sum_slots(slots + row, lower_tiles) / n
    x4 = sum_slots(slots + 2 * row, lower_tiles) / n
    x1 = mean - centre
    m2 = x2 + centre * (2 * x1 + centre)
    m4 = x4 + centre * (4 * x3 + centre * (6 * x2 + centre * (4 * x1 + centre)))
    theta = 1.02 * tl.minimum(eigenvalue_bound(m2, m4, n), centre + centred_eigenvalue_bound(x1, x2, x3, x4, n))
    easy = suits_fast_path(mean, m2, n)
    c = table + tl.where(easy, 0, 3)
    c0, c1, c2 = tl.load(c), tl.load(c + 1), tl.load(c + 2)
    inverse = 1 / theta
    relative = centre * inverse
    z0, z1, z2 = c0 + relative * (c1 + relative * c2), (c1 + 2 * relative * c2) * inverse, c2 * inverse * inverse
    return z0, z1, z2, relative, theta, c0, easy


@triton.jit
def _correction(c, mean) -> tuple:
    """Coefficients of D in E, U and U^2, and D at the mean of the eigenvalues of E."""
    d1, d2, d3 = tl.load(c), tl.load(c + 1), tl.load(c + 2)
    d4 = d3 * FOURTH_POWER
    of_U = d2 - d4 * (LINEAR * LINEAR)
    return d1 - of_U * LINEAR, of_U, d4, mean * (d1 + mean * (d2 + mean * (d3 + mean * d4)))


@triton.jit(do_not_specialize=["n", "phase", "step"])
def roots_product_kernel(
    S, R, scratch, sums, stats, table, n, depth, max_shift, phase, step,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One phase, of one step, for all matrices that are still running.

    A program stores one tile: a product, and multiples of two matrices and of the identity. Where Y is stored or its
    next value, so is Z, by other programs.
    """
    tile_rows = side // TILE
    row, lower_tiles = row_of_slots(side), lower_count(side, TILE)
    matrix, t = matrix_and_tile(tiles_of_phase(phase, tile_rows), phase % 2 == 0)
    slots, stats = sums + matrix * (SUM_ROWS * row), stats + matrix * STATS
    progress = stats + PROGRESS + PROGRESS_SIZE * (step % 2)
    next_progress = stats + PROGRESS + PROGRESS_SIZE * (1 - step % 2)
    symmetric = (phase < RESIDUAL) | (phase == UPDATE)
    is_Z = symmetric & (t >= lower_tiles)
    i, j = tile_index(tl.where(is_Z, t - lower_tiles, t), symmetric, tile_rows)

    # The first phases come before the first progress, which the second one stores.
    begins = phase < RESIDUAL
    status = tl.load(tl.where(begins, stats + STATE, progress + STATUS))
    running, blown, is_last = status == RUNNING, step < 0, step < 0
    kind, fourth, mean = LIFT_STEP, 0.0, 0.0
    if running & (phase >= CORRECTION):
        kind, is_last, blown, fourth, mean = next_step(progress, slots, stats, n, step, row, tile_rows)
    if t == 0:
        if phase == UPDATE:
            if running:
                store_next_progress(progress, next_progress, kind, is_last, blown, fourth, max_shift, table)
            else:
                tl.store(next_progress + STATUS, status)
                tl.store(next_progress + SHIFT, tl.load(progress + SHIFT))
        elif (phase == FIRST_STEP) & (not running):
            store_progress(stats + PROGRESS, status, 0.0, 1.0, 0.0, 0.0, -1.0, 1.0)

    is_shifted = blown & (phase == UPDATE)
    if running & ((not blown) | is_shifted):
        Z = tl.where(is_Z, 1, 0)
        pair = 2 * tl.load(progress + PAIR, phase > FIRST_STEP, 0.0).to(tl.int32)
        left, right, left_2, right_2 = pair + Z, D, D_TRANSPOSED, pair + Z
        target, transposed = 2 - pair + Z, 2 - pair + Z
        first, second, extent = pair + Z, 0, depth
        of_product, of_first, of_second, of_identity = 1 / (UNIT * UNIT), 0.0, 0.0, 0.0
        unit = UNIT
        if begins:
            left, right, target, first, second = X, X + phase, SQUARE, X, SQUARE
            transposed = target
            of_product = 1 / (UNIT_X * UNIT_X)
            if phase == FIRST_STEP:
                z0, z1, z2, relative, theta, gain, easy = _first_coefficients(slots, stats, table, n, row, lower_tiles)
                scale = tl.where(is_Z, 1 / power_above(gain), relative)
                of_Y = tl.where(is_Z, 0.0, 1 / theta)
                of_identity = scale * z0
                of_first = (scale * z1 + of_Y * z0) / UNIT_X
                of_second = (scale * z2 + of_Y * z1) / UNIT_X
                of_product *= of_Y * z2
                extent = tl.where(is_Z, 0, depth)
                target, transposed = Z, Z
                if t == 0:
                    tl.store(stats + THETA, theta)
                    tl.store(stats + SEEMS_EASY, tl.where(easy, 1.0, 0.0))
                    store_progress(stats + PROGRESS, status, 0.0, gain, 0.0, 0.0, -1.0, gain)
            else:
                of_first = 1 / UNIT_X
                unit = UNIT_X
        elif phase == RESIDUAL:
            left, right, target, transposed = pair + 1, pair, E, E
            of_product *= -power_above(tl.load(progress + ZERO_GAIN))
            of_identity = 1.0
        elif phase == RESIDUAL_SQUARE:
            left, right, first, target, transposed = E, E, E, U, U
            of_first = LINEAR / UNIT
        elif phase == CORRECTION:
            left, right, first, second = U, U, E, U
            target, transposed = D, D_TRANSPOSED
            of_first, of_second, of_square, identity_part = _correction(table + 3 * kind, mean)
            of_first, of_second = of_first / UNIT, of_second / UNIT
            of_product *= of_square
            of_identity = -identity_part
        elif blown:
            # Y + shift Z and Z of the step before, in place of Y and Z.
            shift, factor, gain = shift_for(progress, max_shift)
            first, second = 2 - pair + Z, 3 - pair
            target, transposed, extent = pair + Z, pair + Z, 0
            zeta = power_above(gain)
            of_first = factor * tl.where(is_Z, zeta / power_above(factor * gain), 1.0) / UNIT
            of_second = tl.where(is_Z, 0.0, factor * shift * zeta / UNIT)
        else:
            # Off the diagonal both Y D and its transpose are computed, or D Z: D is not symmetric.
            left, right = tl.where(is_Z, D, pair), tl.where(is_Z, pair + 1, D)
            left_2, right_2 = tl.where(is_Z, pair + 1, D_TRANSPOSED), tl.where(is_Z, D_TRANSPOSED, pair)
            extent = tl.where(i == j, depth, 2 * depth)
            _, _, _, identity_part = _correction(table + 3 * kind, mean)
            gain = tl.load(progress + ZERO_GAIN)
            zeta, next_zeta = power_above(gain), power_above(gain * growth(table + 3 * kind))
            scale = tl.where(is_Z, zeta / next_zeta, 1.0)
            if is_last:
                scale = root_scale(stats, not is_Z) * tl.where(is_Z, zeta, 1.0)
            of_first = (1 + identity_part) * scale / UNIT
            of_product *= tl.where(i == j, 1.0, 0.5) * scale

        product = product_tile(
            buffer(scratch, matrix, left, side), buffer(scratch, matrix, right, side),
            buffer(scratch, matrix, left_2, side), buffer(scratch, matrix, right_2, side),
            i, j, depth, extent, side, TILE, DEPTH,
        )  # fmt: skip
        product *= of_product
        weight = tl.where(symmetric & (i != j), 2.0, 1.0)
        if (phase == SQUARE_INPUT) | (phase == RESIDUAL_SQUARE):
            tl.store(slots + 2 * row + t, weight * total(product * product))
        eye = identity(i, j, n, TILE)
        x = of_first * load_planes(buffer(scratch, matrix, first, side), of_first != 0, i, j, side, TILE)
        if phase == SQUARE_INPUT:
            tl.store(slots + t, weight * total(x * x))
            tl.store(slots + row + t, weight * total(product * x))
            x *= 0
        out = of_second * load_planes(buffer(scratch, matrix, second, side), of_second != 0, i, j, side, TILE)
        out += x + product + of_identity * eye
        if phase == RESIDUAL:
            tl.store(slots + t, total(out * out))
            if i == j:
                tl.store(slots + row + i, total(out * eye))
        if is_last & (phase == UPDATE):
            store_result(tl.where(is_Z, R, S) + matrix * n * n, out, i, j, n, TILE)
        else:
            A, mirror = buffer(scratch, matrix, target, side), buffer(scratch, matrix, transposed, side)
            store_tile(A, mirror, out, unit, i, j, symmetric, phase == CORRECTION, side, TILE)
