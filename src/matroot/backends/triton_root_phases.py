"""Roots on a GPU of large matrices that are easy, tile by tile.

What ``_easy`` of ``triton_kernels`` does, in phases, between which all is in memory. A matrix that turns out not to be
easy is marked as ``left``, and the phases that follow pass it by. The scratch of a matrix is BUFFERS matrices, and SUMS
rows of SLOTS sums; facts are the power of two it was divided by and the mean of its eigenvalues.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import BEGINNING, SHARP, UNIT, _total, bound_around_mean, fast_product, looks_easy
from .triton_planes import (
    BUFFERS,
    HALF,
    LANES,
    SUMS,
    area,
    fresh,
    half_of,
    multiply,
    multiply_roughly,
    read,
    write_both,
)
from .triton_tiles import SLOTS, collect, corner, deliver, identity, leave, lower, octave, slots, twice

NEGLIGIBLE = tl.constexpr(6e-7**4)
"""Mean of sixth powers of eigenvalues of I - M, squared, up to which the last step leaves out third powers: it would
take five sixteenths of them."""


@triton.jit
def _scaling(source, n, stride_row, stride_column, ridge) -> tuple:
    """The power of two to divide a matrix by so that the mean of its eigenvalues is one to two, that mean then, what
    to add for the ridge, and whether there is such a power."""
    lane = tl.arange(0, LANES)
    diagonal = tl.load(source + lane * (stride_row + stride_column), lane < n, 0.0).to(tl.float32)
    mean = tl.sum(diagonal, 0) / n
    usable = (mean > 1e-36) & (mean < 1e36)
    exponent = tl.where(usable, octave(mean), 0.0)
    mean *= tl.exp2(-exponent)
    return exponent, (1 + ridge) * mean, ridge * mean, usable


@triton.jit
def _scaled(source, i, j, n, stride_row, stride_column, exponent, shift, usable, TILE: tl.constexpr):
    """A tile of X, with the ridge; of the identity for what cannot be scaled."""
    eye = identity(i, j, n, TILE)
    x = 0.5 * twice(source, i, j, n, stride_row, stride_column, TILE)
    return tl.where(usable, x * tl.exp2(-exponent) + shift * eye, eye)


@triton.jit
def scale(
    A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge,
    matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """X, of mean eigenvalue one to two."""
    source = A + matrix * stride_batch
    exponent, mean, shift, usable = _scaling(source, n, stride_row, stride_column, ridge)
    i, j = corner(t)
    x = _scaled(source, i, j, n, stride_row, stride_column, exponent, shift, usable, TILE)
    write_both(scratch + matrix * (BUFFERS * area(side)), x, i, j, side, TILE)
    if t == 0:
        _note(facts, left, exponent, mean, usable, matrix)


@triton.jit
def _note(facts, left, exponent, mean, usable, matrix):
    tl.store(facts + 2 * matrix, exponent)
    tl.store(facts + 2 * matrix + 1, mean)
    leave(left, matrix, not usable)


@triton.jit
def square(scratch, sums, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """X^2, and what moments are made of."""
    X = scratch + matrix * (BUFFERS * area(side))
    i, j = corner(t)
    x = read(X, i, j, side, TILE)
    _keep(scratch, sums, x, multiply(X, X, i, j, side, TILE, DEPTH), matrix, t, side, TILE)


@triton.jit
def scale_and_square(
    A, scratch, sums, facts, left, n, stride_batch, stride_row, stride_column, ridge,
    matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """Both at once, where to wait for X would take longer than to scale what is needed of it."""
    source = A + matrix * stride_batch
    exponent, mean, shift, usable = _scaling(source, n, stride_row, stride_column, ridge)
    i, j = corner(t)
    found = tl.zeros((TILE, TILE), tl.float32)
    for k in tl.range(side // TILE, num_stages=1):
        a = _scaled(source, i, k, n, stride_row, stride_column, exponent, shift, usable, TILE)
        b = _scaled(source, k, j, n, stride_row, stride_column, exponent, shift, usable, TILE)
        found += fast_product(a * UNIT, b * UNIT)
    x = _scaled(source, i, j, n, stride_row, stride_column, exponent, shift, usable, TILE)
    write_both(scratch + matrix * (BUFFERS * area(side)), x, i, j, side, TILE)
    _keep(scratch, sums, x, found * (1 / (UNIT * UNIT)), matrix, t, side, TILE)
    if t == 0:
        _note(facts, left, exponent, mean, usable, matrix)


@triton.jit
def _keep(scratch, sums, x, square, matrix, t, side, TILE: tl.constexpr):
    i, j, weight = lower(t)
    slot = sums + matrix * (SUMS * SLOTS) + t
    tl.store(slot, weight * _total(x * x))
    tl.store(slot + SLOTS, weight * _total(x * square))
    tl.store(slot + 2 * SLOTS, weight * _total(square * square))
    write_both(scratch + matrix * (BUFFERS * area(side)) + area(side), square, i, j, side, TILE)


@triton.jit
def start(
    scratch, sums, facts, left, table, n,
    matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y and Z after the first step, in the third and fourth place, if the moments look easy."""
    room, lower_tiles = area(side), half_of(side, TILE)
    X = scratch + matrix * (BUFFERS * room)
    sums += matrix * (SUMS * SLOTS)
    m1 = fresh(facts + 2 * matrix + 1)
    squares = slots(sums, lower_tiles)
    cubes, fourths = slots(sums + SLOTS, lower_tiles), slots(sums + 2 * SLOTS, lower_tiles)
    m2, m3, m4 = tl.sum(squares, 0) / n, tl.sum(cubes, 0) / n, tl.sum(fourths, 0) / n
    if looks_easy(m1, m2, n):
        i, j = corner(t)
        x, square = read(X, i, j, side, TILE), read(X + room, i, j, side, TILE)
        cube = multiply(X, X + room, i, j, side, TILE, DEPTH)
        inverse = 1 / (1.02 * bound_around_mean(m1, m2, m3, m4, n))
        z0 = tl.load(table + BEGINNING) * tl.sqrt(inverse)
        z1 = tl.load(table + BEGINNING + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + BEGINNING + 2) * tl.sqrt(inverse) * inverse * inverse
        write_both(X + 2 * room, z0 * x + z1 * square + z2 * cube, i, j, side, TILE)
        write_both(X + 3 * room, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square, i, j, side, TILE)
    elif t == 0:
        leave(left, matrix, True)


# Of the matrices in the scratch the correction D takes the place of X, and E = I - M the fifth. Y and Z are in the
# third and fourth place, E^2 and its factor in D in the second and sixth; in the last step Y and Z are in those, and
# E^2 in the third.


@triton.jit
def gap(
    scratch, n, LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """E = I - Z Y."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    Y, Z = D + (1 if LAST else 2) * room, D + (5 if LAST else 3) * room
    i, j = corner(t)
    e = identity(i, j, n, TILE) - multiply(Z, Y, i, j, side, TILE, DEPTH)
    write_both(D + 4 * room, e, i, j, side, TILE)


@triton.jit
def terms(
    scratch, sums, table, n,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """E^2, and its factor in the correction; in the last step, where both are small, E^2 may be rough, and goes into
    the correction at once."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    E = D + 4 * room
    c = table + BEGINNING + (10 if LAST else 5)
    i, j, weight = lower(t)
    e = read(E, i, j, side, TILE)
    eye = identity(i, j, n, TILE)
    if LAST:
        square = multiply_roughly(E, E, i, j, side, TILE, DEPTH)
        tl.store(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS + t, weight * _total(square * square))
        write_both(D, tl.load(c) * eye + tl.load(c + 1) * e + tl.load(c + 2) * square, i, j, side, TILE)
        write_both(D + 2 * room, square, i, j, side, TILE, HALF)
    else:
        square = multiply(E, E, i, j, side, TILE, DEPTH)
        write_both(D + room, square, i, j, side, TILE)
        factor = tl.load(c + 2) * eye + tl.load(c + 3) * e + tl.load(c + 4) * square
        write_both(D + 5 * room, factor, i, j, side, TILE)


@triton.jit
def lacking(sums, n, matrix, side, TILE: tl.constexpr):
    """Whether higher powers of E than its square would show in the result: what the cube of the sum of fourth powers
    of its eigenvalues bounds is the square of the sum of sixth ones."""
    fourth = collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, half_of(side, TILE))
    return NEGLIGIBLE * n * n < fourth * fourth * fourth


@triton.jit
def rest(
    scratch, table, n, LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The correction with all its powers of E; in the last step those beyond the square may be rough."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    E = D + 4 * room
    c = table + BEGINNING + (10 if LAST else 5)
    i, j = corner(t)
    if LAST:
        square = D + 2 * room
        d = read(D, i, j, side, TILE)
        d += tl.load(c + 3) * multiply_roughly(square, E, i, j, side, TILE, DEPTH)
        d += tl.load(c + 4) * multiply_roughly(square, square, i, j, side, TILE, DEPTH)
    else:
        d = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * read(E, i, j, side, TILE)
        d += multiply(D + room, D + 5 * room, i, j, side, TILE, DEPTH)
    write_both(D, d, i, j, side, TILE)


@triton.jit
def correct(
    scratch, sums, facts, left, S, R, n,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y + Y D, then Z + D Z: from the last step the roots, if it was close enough to be the last."""
    room, lower_tiles = area(side), half_of(side, TILE)
    D = scratch + matrix * (BUFFERS * room)
    first = t < lower_tiles
    old = D + tl.where(first, 1 if LAST else 2, 5 if LAST else 3) * room
    i, j = corner(t % lower_tiles)
    x = read(old, i, j, side, TILE)
    fourths = slots(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, lower_tiles)
    x += multiply(tl.where(first, old, D), tl.where(first, D, old), i, j, side, TILE, DEPTH)
    if LAST:
        if tl.sum(fourths, 0) < SHARP * SHARP:
            scale = tl.exp2(0.5 * fresh(facts + 2 * matrix))
            target = tl.where(first, S, R) + matrix * n * n
            deliver(target, tl.where(first, scale, 1 / scale) * x, i, j, n, TILE)
        elif t == 0:
            leave(left, matrix, True)
    else:
        write_both(D + tl.where(first, 1, 5) * room, x, i, j, side, TILE)
