"""A tile of every product of the roots.

With A in its scale, Y -> (A/theta)^(1/2) and Z -> (A/theta)^(-1/2). A step computes E = I - Z Y, which is not symmetric
and must not be made so where A is ill-conditioned, U = E^2 + E/(2 RATIO), the correction D = D(E), and the symmetric
parts of Y + Y D and Z + D Z. Multiples of the identity are kept out of factors, and added in float32.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import centred_eigenvalue_bound, eigenvalue_bound, suits_fast_path, total
from ..tiled.tiles import identity, lower_tile_count, store_result
from .roots_input import UNIT_X, X, root_scale
from .roots_progress import FOURTH_POWER, growth, power_above
from .schedule import RATIO
from .tiles import buffer, load_planes, product_tile, store_tile, sum_slots, tile_index

SQUARE_INPUT = tl.constexpr(0)  # phases
FIRST_STEP = tl.constexpr(1)
RESIDUAL = tl.constexpr(2)
RESIDUAL_SQUARE = tl.constexpr(3)
CORRECTION = tl.constexpr(4)
UPDATE = tl.constexpr(5)

SQUARE = tl.constexpr(5)  # buffers: after X its square, and the pairs Y, Z in 0, 1 and 2, 3
E = tl.constexpr(4)
U = tl.constexpr(5)
D = tl.constexpr(6)
D_TRANSPOSED = tl.constexpr(7)
UNIT = tl.constexpr(2048.0)  # of all but X
LINEAR = tl.constexpr(0.5 / RATIO)


@triton.jit
def tiles_of_phase(phase, mirrors, tile_rows):
    lower = tile_rows * (tile_rows + 1) // 2
    both = (phase == FIRST_STEP) | (phase == UPDATE)
    return tl.where(both, 2 * lower, tl.where((phase == SQUARE_INPUT) | mirrors, lower, tile_rows * tile_rows))


@triton.jit
def first_scales(slots, row, n, mean, centre, tiles) -> tuple:
    """From the moments of X = A less its centre: theta, a bound of A, and whether A seems well-conditioned."""
    x2, x3 = sum_slots(slots, tiles) / n, sum_slots(slots + row, tiles) / n
    x4 = sum_slots(slots + 2 * row, tiles) / n
    x1 = mean - centre
    m2 = x2 + centre * (2 * x1 + centre)
    m4 = x4 + centre * (4 * x3 + centre * (6 * x2 + centre * (4 * x1 + centre)))
    theta = 1.02 * tl.minimum(eigenvalue_bound(m2, m4, n), centre + centred_eigenvalue_bound(x1, x2, x3, x4, n))
    return theta, suits_fast_path(mean, m2, n)


@triton.jit
def _first_polynomial(c, centre, theta) -> tuple:
    """Coefficients of Z as a polynomial of X, and the centre relative to theta."""
    c0, c1, c2 = tl.load(c), tl.load(c + 1), tl.load(c + 2)
    inverse = 1 / theta
    relative = centre * inverse
    z0, z1, z2 = c0 + relative * (c1 + relative * c2), (c1 + 2 * relative * c2) * inverse, c2 * inverse * inverse
    return z0, z1, z2, relative


@triton.jit
def _correction(c, mean) -> tuple:
    """Coefficients of D in E, U and U^2, and D at the mean of the eigenvalues of E."""
    d1, d2, d3 = tl.load(c), tl.load(c + 1), tl.load(c + 2)
    d4 = d3 * FOURTH_POWER
    of_U = d2 - d4 * (LINEAR * LINEAR)
    return d1 - of_U * LINEAR, of_U, d4, mean * (d1 + mean * (d2 + mean * (d3 + mean * d4)))


@triton.jit
def roots_tile(
    S, R, scratch, slots, row, t, n, depth, phase, mirrors, pair, c, centre, theta, exponent,
    gain, mean, is_last, blown, shift, factor, zeta, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Store a tile of a phase: a product, and multiples of two matrices and of the identity.

    Where Y is stored or its next value, so is Z, in tiles of their own. ``c`` are the coefficients of the step,
    ``pair`` is the first buffer of Y and Z; a step that ``mirrors`` takes E for symmetric. After an iteration that blew
    up, Y + shift Z and Z of the step before, in the other pair and with Z relative to ``zeta``, are stored times
    ``factor`` in place of Y and Z.
    """
    tile_rows, lower_tiles = side // TILE, lower_tile_count(side, TILE)
    symmetric = (phase < RESIDUAL) | (phase == UPDATE) | mirrors
    is_Z = ((phase < RESIDUAL) | (phase == UPDATE)) & (t >= lower_tiles)
    i, j = tile_index(tl.where(is_Z, t - lower_tiles, t), symmetric, tile_rows)
    Z = tl.where(is_Z, 1, 0)
    left, right, left_2, right_2 = pair + Z, D, D_TRANSPOSED, pair + Z
    target, transposed = 2 - pair + Z, 2 - pair + Z
    first, second, extent = pair + Z, 0, depth
    of_product, of_first, of_second, of_identity = 1 / (UNIT * UNIT), 0.0, 0.0, 0.0
    unit = UNIT
    if phase < RESIDUAL:
        left, right, target, first, second = X, X + phase, SQUARE, X, SQUARE
        of_product = 1 / (UNIT_X * UNIT_X)
        if phase == FIRST_STEP:
            z0, z1, z2, relative = _first_polynomial(c, centre, theta)
            scale = tl.where(is_Z, 1 / power_above(gain), relative)
            of_Y = tl.where(is_Z, 0.0, 1 / theta)
            of_identity = scale * z0
            of_first = (scale * z1 + of_Y * z0) / UNIT_X
            of_second = (scale * z2 + of_Y * z1) / UNIT_X
            of_product *= of_Y * z2
            extent = tl.where(is_Z, 0, depth)
            target = Z
        else:
            of_first = 1 / UNIT_X
            unit = UNIT_X
        transposed = target
    elif phase == RESIDUAL:
        left, right, target, transposed = pair + 1, pair, E, E
        of_product *= -power_above(gain)
        of_identity = 1.0
    elif phase == RESIDUAL_SQUARE:
        left, right, first, target, transposed = E, E, E, U, U
        of_first = LINEAR / UNIT
    elif phase == CORRECTION:
        left, right, first, second = U, U, E, U
        target, transposed = D, tl.where(mirrors, D, D_TRANSPOSED)
        of_first, of_second, of_square, identity_part = _correction(c, mean)
        of_first, of_second = of_first / UNIT, of_second / UNIT
        of_product *= of_square
        of_identity = -identity_part
    elif blown:
        first, second = 2 - pair + Z, 3 - pair
        target, transposed, extent = pair + Z, pair + Z, 0
        of_first = factor * tl.where(is_Z, zeta / power_above(gain), 1.0) / UNIT
        of_second = tl.where(is_Z, 0.0, factor * shift * zeta / UNIT)
    else:
        # Off the diagonal both Y D and its transpose are computed, or D Z, where D is not symmetric.
        left, right = tl.where(is_Z, D, pair), tl.where(is_Z, pair + 1, D)
        left_2, right_2 = tl.where(is_Z, pair + 1, D_TRANSPOSED), tl.where(is_Z, D_TRANSPOSED, pair)
        once = (i == j) | mirrors
        extent = tl.where(once, depth, 2 * depth)
        _, _, _, identity_part = _correction(c, mean)
        of_Z = power_above(gain)
        scale = tl.where(is_Z, of_Z / power_above(gain * growth(c)), 1.0)
        if is_last:
            scale = root_scale(exponent, theta, not is_Z) * tl.where(is_Z, of_Z, 1.0)
        of_first = (1 + identity_part) * scale / UNIT
        of_product *= tl.where(once, 1.0, 0.5) * scale

    product = product_tile(
        buffer(scratch, left, side), buffer(scratch, right, side),
        buffer(scratch, left_2, side), buffer(scratch, right_2, side),
        i, j, depth, extent, side, TILE, DEPTH,
    )  # fmt: skip
    product *= of_product
    weight = tl.where(symmetric & (i != j), 2.0, 1.0)
    if (phase == SQUARE_INPUT) | (phase == RESIDUAL_SQUARE):
        tl.store(slots + 2 * row + t, weight * total(product * product))
    eye = identity(i, j, n, TILE)
    x = of_first * load_planes(buffer(scratch, first, side), of_first != 0, i, j, side, TILE)
    if phase == SQUARE_INPUT:
        tl.store(slots + t, weight * total(x * x))
        tl.store(slots + row + t, weight * total(product * x))
        x *= 0
    out = of_second * load_planes(buffer(scratch, second, side), of_second != 0, i, j, side, TILE)
    out += x + product + of_identity * eye
    if phase == RESIDUAL:
        tl.store(slots + t, weight * total(out * out))
        if i == j:
            tl.store(slots + row + i, total(out * eye))
    if is_last & (phase == UPDATE):
        store_result(tl.where(is_Z, R, S), out, i, j, n, TILE)
    else:
        A, mirror = buffer(scratch, target, side), buffer(scratch, transposed, side)
        store_tile(A, mirror, out, unit, i, j, symmetric, (phase == CORRECTION) & (not mirrors), side, TILE)
