"""Roots on a GPU of large matrices that are easy, tile by tile.

What ``_easy`` of ``triton_kernels`` does, in phases, between which all is in memory. A matrix that turns out not to be
easy is marked as ``left``, and the phases that follow pass it by. The scratch of a matrix is BUFFERS matrices, and SUMS
rows of SLOTS sums; facts are the power of two it was divided by and the mean of its eigenvalues.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import FAST_STEPS_OFFSET, TAYLOR_THRESHOLD, centred_eigenvalue_bound, suits_fast_path, total
from .split_fp16 import BUFFERS, HALF, LANES, SUMS, area, fresh, half_of, multiply, multiply_roughly, read, write_both
from .tiles import SLOTS, collect, corner, deliver, floor_log2, identity, leave, lower, slots, twice

NEGLIGIBLE = tl.constexpr(6e-7**4)
"""The mean of sixth powers of eigenvalues of E, squared, up to which the last step leaves out third powers: of those it
would take five sixteenths."""


@triton.jit
def scale(
    A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge,
    matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """X, of mean eigenvalue one to two, with the ridge; the identity for what cannot be scaled so."""
    room = area(side)
    source = A + matrix * stride_batch
    lane = tl.arange(0, LANES)
    diagonal = tl.load(source + lane * (stride_row + stride_column), lane < n, 0.0).to(tl.float32)
    i, j = corner(t)
    x = 0.5 * twice(source, i, j, n, stride_row, stride_column, TILE)
    mean = tl.sum(diagonal, 0) / n
    usable = (mean > 1e-36) & (mean < 1e36)
    exponent = tl.where(usable, floor_log2(mean), 0.0)
    mean *= tl.exp2(-exponent)
    eye = identity(i, j, n, TILE)
    x = tl.where(usable, x * tl.exp2(-exponent) + ridge * mean * eye, eye)
    write_both(scratch + matrix * (BUFFERS * room), x, i, j, side, TILE)
    if t == 0:
        tl.store(facts + 2 * matrix, exponent)
        tl.store(facts + 2 * matrix + 1, (1 + ridge) * mean)
        leave(left, matrix, not usable)


@triton.jit
def square(scratch, sums, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """X^2, and what moments are made of."""
    room = area(side)
    X = scratch + matrix * (BUFFERS * room)
    i, j, weight = lower(t)
    x = read(X, i, j, side, TILE)
    square = multiply(X, X, i, j, side, TILE, DEPTH)
    slot = sums + matrix * (SUMS * SLOTS) + t
    tl.store(slot, weight * total(x * x))
    tl.store(slot + SLOTS, weight * total(x * square))
    tl.store(slot + 2 * SLOTS, weight * total(square * square))
    write_both(X + room, square, i, j, side, TILE)


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
    if suits_fast_path(m1, m2, n):
        i, j = corner(t)
        x, square = read(X, i, j, side, TILE), read(X + room, i, j, side, TILE)
        cube = multiply(X, X + room, i, j, side, TILE, DEPTH)
        inverse = 1 / (1.02 * centred_eigenvalue_bound(m1, m2, m3, m4, n))
        z0 = tl.load(table + FAST_STEPS_OFFSET) * tl.sqrt(inverse)
        z1 = tl.load(table + FAST_STEPS_OFFSET + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + FAST_STEPS_OFFSET + 2) * tl.sqrt(inverse) * inverse * inverse
        write_both(X + 2 * room, z0 * x + z1 * square + z2 * cube, i, j, side, TILE)
        write_both(X + 3 * room, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square, i, j, side, TILE)
    elif t == 0:
        leave(left, matrix, True)


# Of the matrices in the scratch the correction D takes the place of X, and E = I - M the fifth. Y and Z are in the
# third and fourth place, U in the second; in the last step Y and Z are in the second and sixth, E^2 in the third.
# U is E^2 + a E with a = c3/(2 c4), so that two powers of it and one of E make D = c0 + c1 E + ... + c4 E^4.


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
def _linear_part(c):
    """a in U, given the coefficients of D."""
    return 0.5 * tl.load(c + 3) / tl.load(c + 4)


@triton.jit
def terms(
    scratch, sums, table, n,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """U; in the last step E^2, which may be rough where it is small, and the correction up to that power."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    E = D + 4 * room
    c = table + FAST_STEPS_OFFSET + (10 if LAST else 5)
    i, j, weight = lower(t)
    e = read(E, i, j, side, TILE)
    if LAST:
        square = multiply_roughly(E, E, i, j, side, TILE, DEPTH)
        tl.store(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS + t, weight * total(square * square))
        first = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * e + tl.load(c + 2) * square
        write_both(D, first, i, j, side, TILE)
        write_both(D + 2 * room, square, i, j, side, TILE, HALF)
    else:
        u = multiply(E, E, i, j, side, TILE, DEPTH) + _linear_part(c) * e
        write_both(D + room, u, i, j, side, TILE)


@triton.jit
def lacking(sums, n, matrix, side, TILE: tl.constexpr):
    """Whether higher powers of E than its square would show in the result.

    The sum of sixth powers of its eigenvalues, squared, is at most the cube of that of fourth ones.
    """
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
    c = table + FAST_STEPS_OFFSET + (10 if LAST else 5)
    i, j = corner(t)
    if LAST:
        square = D + 2 * room
        d = read(D, i, j, side, TILE)
        d += tl.load(c + 3) * multiply_roughly(square, E, i, j, side, TILE, DEPTH)
        d += tl.load(c + 4) * multiply_roughly(square, square, i, j, side, TILE, DEPTH)
    else:
        U = D + room
        a = _linear_part(c)
        b = tl.load(c + 2) - tl.load(c + 4) * a * a
        d = tl.load(c) * identity(i, j, n, TILE) + (tl.load(c + 1) - a * b) * read(E, i, j, side, TILE)
        d += b * read(U, i, j, side, TILE) + tl.load(c + 4) * multiply(U, U, i, j, side, TILE, DEPTH)
    write_both(D, d, i, j, side, TILE)


@triton.jit
def correct(
    scratch, sums, facts, left, S, R, n,
    LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y + Y D, then Z + D Z: from the last step the roots, if it was close enough to be the last.

    The tiles of Z D that are made are those of D Z on the other side of the diagonal.
    """
    room, lower_tiles = area(side), half_of(side, TILE)
    D = scratch + matrix * (BUFFERS * room)
    first = t < lower_tiles
    old = D + tl.where(first, 1 if LAST else 2, 5 if LAST else 3) * room
    i, j = corner(t % lower_tiles)
    x = read(old, i, j, side, TILE)
    fourths = slots(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, lower_tiles)
    x += multiply(old, D, i, j, side, TILE, DEPTH)
    if LAST:
        if tl.sum(fourths, 0) < TAYLOR_THRESHOLD * TAYLOR_THRESHOLD:
            scale = tl.exp2(0.5 * fresh(facts + 2 * matrix))
            target = tl.where(first, S, R) + matrix * n * n
            deliver(target, tl.where(first, scale, 1 / scale) * x, i, j, n, TILE)
        elif t == 0:
            leave(left, matrix, True)
    else:
        write_both(D + tl.where(first, 1, 5) * room, x, i, j, side, TILE)
