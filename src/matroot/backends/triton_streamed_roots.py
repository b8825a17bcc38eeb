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
from .triton_planes import BUFFERS, SUMS, here, multiply, read, whereabouts, write_both
from .triton_tiles import collect, corner, deliver, identity, leave, lower, octave, twice

SHORT = tl.constexpr(4e-8)
"""The sum of fourth powers of I - M that allows the last step to leave out the cube: an error of 9e-7 at most."""


@triton.jit
def scale_kernel(
    A, scratch, facts, left, n, stride_batch, stride_row, stride_column, ridge,
    SIZE: tl.constexpr, TILE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """X, of mean eigenvalue one to two, with the ridge; the identity for what cannot be scaled so."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
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
    write_both(scratch + matrix * (BUFFERS * AREA), x, i, j, SIZE, TILE)
    if t == 0:
        tl.store(facts + 2 * matrix, exponent)
        tl.store(facts + 2 * matrix + 1, (1 + ridge) * mean)
        leave(left, matrix, not usable)


@triton.jit
def square_kernel(
    scratch, sums, left, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr
):
    """X^2, and what moments are made of."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if here(left, matrix):
        X = scratch + matrix * (BUFFERS * AREA)
        i, j, weight = lower(t)
        x = read(X, i, j, SIZE, TILE)
        square = multiply(X, X, i, j, SIZE, TILE, DEPTH)
        slot = sums + matrix * (SUMS * SLOTS) + t
        tl.store(slot, weight * _total(x * x))
        tl.store(slot + SLOTS, weight * _total(x * square))
        tl.store(slot + 2 * SLOTS, weight * _total(square * square))
        write_both(X + AREA, square, i, j, SIZE, TILE)


@triton.jit
def start_kernel(
    scratch, sums, facts, left, table, n,
    SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Y and Z after the first step, in the third and fourth place, if the moments look easy."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    X = scratch + matrix * (BUFFERS * AREA)
    sums += matrix * (SUMS * SLOTS)
    m1 = tl.load(facts + 2 * matrix + 1)
    m2 = collect(sums, HALF, SLOTS) / n
    easy = here(left, matrix) & looks_easy(m1, m2, n)
    if easy:
        i, j = corner(t)
        x, square = read(X, i, j, SIZE, TILE), read(X + AREA, i, j, SIZE, TILE)
        cube = multiply(X, X + AREA, i, j, SIZE, TILE, DEPTH)
        m3 = collect(sums + SLOTS, HALF, SLOTS) / n
        m4 = collect(sums + 2 * SLOTS, HALF, SLOTS) / n
        inverse = 1 / (1.02 * bound_around_mean(m1, m2, m3, m4, n))
        z0 = tl.load(table) * tl.sqrt(inverse)
        z1 = tl.load(table + 1) * tl.sqrt(inverse) * inverse
        z2 = tl.load(table + 2) * tl.sqrt(inverse) * inverse * inverse
        write_both(X + 2 * AREA, z0 * x + z1 * square + z2 * cube, i, j, SIZE, TILE)
        write_both(X + 3 * AREA, z0 * identity(i, j, n, TILE) + z1 * x + z2 * square, i, j, SIZE, TILE)
    elif t == 0:
        leave(left, matrix, True)


# Of the matrices in the scratch the correction D takes the place of X, and I - M the fifth. Y and Z are in the third
# and fourth place, the square and the higher terms of the step in the second and sixth; in the last step the other way
# round.


@triton.jit
def gap_kernel(
    scratch, left, n, LAST: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """E = I - Z Y."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * AREA)
        Y, Z = D + (1 if LAST else 2) * AREA, D + (5 if LAST else 3) * AREA
        i, j = corner(t)
        e = identity(i, j, n, TILE) - multiply(Z, Y, i, j, SIZE, TILE, DEPTH)
        write_both(D + 4 * AREA, e, i, j, SIZE, TILE)


@triton.jit
def terms_kernel(
    scratch, sums, left, table, n,
    LAST: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Of the correction in powers of E what E and E^2 make, E^2 and its factor in the rest."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * AREA)
        c = table + (10 if LAST else 5)
        i, j, weight = lower(t)
        e = read(D + 4 * AREA, i, j, SIZE, TILE)
        square = multiply(D + 4 * AREA, D + 4 * AREA, i, j, SIZE, TILE, DEPTH)
        if LAST:
            tl.store(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS + t, weight * _total(square * square))
        d = tl.load(c) * identity(i, j, n, TILE) + tl.load(c + 1) * e + tl.load(c + 2) * square
        write_both(D, d, i, j, SIZE, TILE)
        write_both(D + (2 if LAST else 1) * AREA, square, i, j, SIZE, TILE)
        rest = tl.load(c + 3) * e + tl.load(c + 4) * square
        write_both(D + (3 if LAST else 5) * AREA, rest, i, j, SIZE, TILE)


@triton.jit
def rest_kernel(
    scratch, sums, left, LAST: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """The rest of the correction, where it counts."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    needed = here(left, matrix)
    if LAST:
        needed = needed & (collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, HALF, SLOTS) >= SHORT)
    if needed:
        D = scratch + matrix * (BUFFERS * AREA)
        square, rest = D + (2 if LAST else 1) * AREA, D + (3 if LAST else 5) * AREA
        i, j = corner(t)
        d = read(D, i, j, SIZE, TILE) + multiply(square, rest, i, j, SIZE, TILE, DEPTH)
        write_both(D, d, i, j, SIZE, TILE)


@triton.jit
def correct_kernel(
    scratch, sums, facts, left, S, R, n,
    LAST: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Y + Y D, then Z + D Z: from the last step the roots, if it was close enough to be the last."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(2 * HALF)
    if here(left, matrix):
        D = scratch + matrix * (BUFFERS * AREA)
        first = t < HALF
        old = D + tl.where(first, 1 if LAST else 2, 5 if LAST else 3) * AREA
        i, j = corner(t % HALF)
        x = read(old, i, j, SIZE, TILE)
        x += multiply(tl.where(first, old, D), tl.where(first, D, old), i, j, SIZE, TILE, DEPTH)
        if LAST:
            if collect(sums + matrix * (SUMS * SLOTS) + 3 * SLOTS, HALF, SLOTS) < SHARP * SHARP:
                scale = tl.exp2(0.5 * tl.load(facts + 2 * matrix))
                target = tl.where(first, S, R) + matrix * n * n
                deliver(target, tl.where(first, scale, 1 / scale) * x, i, j, n, TILE)
            elif t == 0:
                leave(left, matrix, True)
        else:
            write_both(D + tl.where(first, 1, 5) * AREA, x, i, j, SIZE, TILE)
