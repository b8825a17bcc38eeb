"""Roots on a GPU of many large matrices that are easy: one launch a product, one program per tile.

What ``_easy`` of ``triton_kernels`` does, between launches in memory. A matrix that turns out not to be easy is
marked as ``left``, and the launches that follow pass it by. The scratch of a matrix is BUFFERS matrices, and SUMS
rows of SLOTS sums; facts are the power of two it was divided by and the mean of its eigenvalues.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import SHARP, _total, bound_around_mean, looks_easy
from .triton_planes import BUFFERS, SUMS, extent, here, multiply, read, whereabouts, write_both
from .triton_tiles import SLOTS, collect, corner, deliver, identity, leave, lower, octave, twice

LANES = tl.constexpr(1024)
"""Rows of the largest matrix."""
SHORT = tl.constexpr(4e-8)
"""The sum of fourth powers of I - M that allows the last step to leave out the cube: an error of 9e-7 at most."""


@triton.jit
def scale_kernel(
    A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge,
    side, TILE: tl.constexpr,
):  # fmt: skip
    """X, of mean eigenvalue one to two, with the ridge; the identity for what cannot be scaled so."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
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
def square_kernel(scratch, sums, left, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """X^2, and what moments are made of."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
    if here(left, matrix):
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
def start_kernel(
    scratch, sums, facts, left, table, n,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y and Z after the first step, in the third and fourth place, if the moments look easy."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
    X = scratch + matrix * (BUFFERS * room)
    sums += matrix * (SUMS * SLOTS)
    m1 = tl.load(facts + 2 * matrix + 1)
    m2 = collect(sums, lower_tiles) / n
    easy = here(left, matrix) & looks_easy(m1, m2, n)
    if easy:
        i, j = corner(t)
        x, square = read(X, i, j, side, TILE), read(X + room, i, j, side, TILE)
        cube = multiply(X, X + room, i, j, side, TILE, DEPTH)
        m3 = collect(sums + SLOTS, lower_tiles) / n
        m4 = collect(sums + 2 * SLOTS, lower_tiles) / n
        inverse = 1 / (1.02 * bound_around_mean(m1, m2, m3, m4, n))
        z0 = tl.load(table) * tl.sqrt(inverse)
        z1 = tl.load(table + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + 2) * tl.sqrt(inverse) * inverse * inverse
        write_both(X + 2 * room, z0 * x + z1 * square + z2 * cube, i, j, side, TILE)
        write_both(X + 3 * room, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square, i, j, side, TILE)
    elif t == 0:
        leave(left, matrix, True)


# Of the matrices in the scratch the correction D takes the place of X, and I - M the fifth. Y and Z are in the third
# and fourth place, the square and the higher terms of the step in the second and sixth; in the last step the other way
# round.


@triton.jit
def gap_kernel(
    scratch, left, n, LAST: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """E = I - Z Y."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * room)
        Y, Z = D + (1 if LAST else 2) * room, D + (5 if LAST else 3) * room
        i, j = corner(t)
        e = identity(i, j, n, TILE) - multiply(Z, Y, i, j, side, TILE, DEPTH)
        write_both(D + 4 * room, e, i, j, side, TILE)


@triton.jit
def terms_kernel(
    scratch, sums, left, table, n,
    LAST: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Of the correction in powers of E what E and E^2 make, E^2 and its factor in the rest."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * room)
        c = table + (10 if LAST else 5)
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
def rest_kernel(
    scratch, sums, left, LAST: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The rest of the correction, where it counts."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(lower_tiles)
    needed = here(left, matrix)
    if LAST:
        needed = needed & (collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, lower_tiles) >= SHORT)
    if needed:
        D = scratch + matrix * (BUFFERS * room)
        square, rest = D + (2 if LAST else 1) * room, D + (3 if LAST else 5) * room
        i, j = corner(t)
        d = read(D, i, j, side, TILE) + multiply(square, rest, i, j, side, TILE, DEPTH)
        write_both(D, d, i, j, side, TILE)


@triton.jit
def correct_kernel(
    scratch, sums, facts, left, S, R, n,
    LAST: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Y + Y D, then Z + D Z: from the last step the roots, if it was close enough to be the last."""
    room, lower_tiles = extent(side, TILE)
    matrix, t = whereabouts(2 * lower_tiles)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * room)
        first = t < lower_tiles
        old = D + tl.where(first, 1 if LAST else 2, 5 if LAST else 3) * room
        i, j = corner(t % lower_tiles)
        x = read(old, i, j, side, TILE)
        x += multiply(tl.where(first, old, D), tl.where(first, D, old), i, j, side, TILE, DEPTH)
        if LAST:
            if collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, lower_tiles) < SHARP * SHARP:
                scale = tl.exp2(0.5 * tl.load(facts + 2 * matrix))
                target = tl.where(first, S, R) + matrix * n * n
                deliver(target, tl.where(first, scale, 1 / scale) * x, i, j, n, TILE)
            elif t == 0:
                leave(left, matrix, True)
        else:
            write_both(D + tl.where(first, 1, 5) * room, x, i, j, side, TILE)
