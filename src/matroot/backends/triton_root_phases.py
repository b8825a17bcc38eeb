"""Roots on a GPU of large matrices that are easy, tile by tile.

What ``_easy`` of ``triton_kernels`` does, in phases, between which all is in memory. A matrix that turns out not to be
easy is marked as ``left``, and the phases that follow pass it by. The scratch of a matrix is BUFFERS matrices, and SUMS
rows of SLOTS sums; facts are the power of two it was divided by and the mean of its eigenvalues.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import BEGINNING, SHARP, _total, bound_around_mean, looks_easy
from .triton_planes import BUFFERS, LANES, SUMS, area, fresh, half_of, multiply, multiply_roughly, read, write_both
from .triton_tiles import SLOTS, collect, corner, deliver, identity, leave, lower, octave, twice


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
    exponent = tl.where(usable, octave(mean), 0.0)
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
    tl.store(slot, weight * _total(x * x))
    tl.store(slot + SLOTS, weight * _total(x * square))
    tl.store(slot + 2 * SLOTS, weight * _total(square * square))
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
    m2 = collect(sums, lower_tiles) / n
    if looks_easy(m1, m2, n):
        i, j = corner(t)
        x, square = read(X, i, j, side, TILE), read(X + room, i, j, side, TILE)
        cube = multiply(X, X + room, i, j, side, TILE, DEPTH)
        m3 = collect(sums + SLOTS, lower_tiles) / n
        m4 = collect(sums + 2 * SLOTS, lower_tiles) / n
        inverse = 1 / (1.02 * bound_around_mean(m1, m2, m3, m4, n))
        z0 = tl.load(table + BEGINNING) * tl.sqrt(inverse)
        z1 = tl.load(table + BEGINNING + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + BEGINNING + 2) * tl.sqrt(inverse) * inverse * inverse
        write_both(X + 2 * room, z0 * x + z1 * square + z2 * cube, i, j, side, TILE)
        write_both(X + 3 * room, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square, i, j, side, TILE)
    elif t == 0:
        leave(left, matrix, True)


# Of the matrices in the scratch the correction D takes the place of X, and I - M the fifth. Y and Z are in the third
# and fourth place, the square and the higher terms of the step in the second and sixth; in the last step the other way
# round.


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
    """Of the correction in powers of E what E and E^2 make, E^2 and its factor in the rest."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    c = table + BEGINNING + (10 if LAST else 5)
    i, j, weight = lower(t)
    e = read(D + 4 * room, i, j, side, TILE)
    square = multiply(D + 4 * room, D + 4 * room, i, j, side, TILE, DEPTH)
    if LAST:
        tl.store(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS + t, weight * _total(square * square))
    d = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * e + tl.load(c + 2) * square
    write_both(D, d, i, j, side, TILE)
    write_both(D + (2 if LAST else 1) * room, square, i, j, side, TILE)
    rest = tl.load(c + 3) * e + tl.load(c + 4) * square
    write_both(D + (3 if LAST else 5) * room, rest, i, j, side, TILE)


@triton.jit
def rest(
    scratch, LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The rest of the correction; in the last step that may be rough."""
    room = area(side)
    D = scratch + matrix * (BUFFERS * room)
    squared, others = D + (2 if LAST else 1) * room, D + (3 if LAST else 5) * room
    i, j = corner(t)
    d = read(D, i, j, side, TILE)
    if LAST:
        d += multiply_roughly(squared, others, i, j, side, TILE, DEPTH)
    else:
        d += multiply(squared, others, i, j, side, TILE, DEPTH)
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
    x += multiply(tl.where(first, old, D), tl.where(first, D, old), i, j, side, TILE, DEPTH)
    if LAST:
        if collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, lower_tiles) < SHARP * SHARP:
            scale = tl.exp2(0.5 * fresh(facts + 2 * matrix))
            target = tl.where(first, S, R) + matrix * n * n
            deliver(target, tl.where(first, scale, 1 / scale) * x, i, j, n, TILE)
        elif t == 0:
            leave(left, matrix, True)
    else:
        write_both(D + tl.where(first, 1, 5) * room, x, i, j, side, TILE)
