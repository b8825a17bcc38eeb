"""Gradients on a GPU of many large matrices that are easy: one launch a product, one program per tile.

Chebyshev's iteration as in ``triton_solve``. A matrix that is not easy is marked as ``left``, and the launches that
follow pass it by. The scratch of a matrix is BUFFERS matrices, V, C, the last move, mu R and two for X in turns, and
SUMS rows of SLOTS sums; facts are mu, the unit that C is in, and at first was, and what V reaches.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import _total, bound_around_mean
from .triton_planes import (
    BUFFERS,
    SUMS,
    multiply,
    multiply_both,
    norm_unit,
    note,
    read,
    whereabouts,
    write,
    write_both,
)
from .triton_solve import chebyshev
from .triton_tiles import collect, corner, deliver, given, identity, lower, twice

STEPS = tl.constexpr(8)
"""Launches of the iteration."""
WANTED = tl.constexpr(3e-6)
"""Bound of the relative error; what is left is a third of it or less."""
EASY = tl.constexpr(0.225)
"""What a step may leave of the error so that all of them leave less than what is wanted."""


@triton.jit
def measure_kernel(
    S, R, GS, GR, sums, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """What norms are made of, of both roots and the cotangents."""
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    i, j, weight = lower(t)
    s = given(S + start, i, j, n, n, 1, TILE)
    tl.store(sums + t, weight * _total(s * s))
    r = given(R + start, i, j, n, n, 1, TILE)
    tl.store(sums + SLOTS + t, weight * _total(r * r))
    if HAS_S:
        note(sums + 2 * SLOTS, t, 0.5 * twice(GS + start, i, j, n, n, 1, TILE), weight, SLOTS)
    if HAS_R:
        note(sums + 4 * SLOTS, t, 0.5 * twice(GR + start, i, j, n, n, 1, TILE), weight, SLOTS)


@triton.jit
def prepare_kernel(
    S, R, GS, GR, scratch, sums, facts, left, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """V less twice the identity, mu R, and the cotangent of the inverse root or else of the root."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    V = scratch + matrix * (BUFFERS * AREA)
    mu = tl.sqrt(tl.sqrt(collect(sums, HALF, SLOTS)) / tl.sqrt(collect(sums + SLOTS, HALF, SLOTS)))
    own = norm_unit(sums + (4 if HAS_R else 2) * SLOTS, HALF, SLOTS)
    unit = own
    if HAS_R:
        unit /= mu * mu
        if HAS_S:
            unit = tl.maximum(unit, norm_unit(sums + 2 * SLOTS, HALF, SLOTS))
    i, j = corner(t)
    r = mu * given(R + start, i, j, n, n, 1, TILE)
    v = (1 / mu) * given(S + start, i, j, n, n, 1, TILE) + r - 2 * identity(i, j, n, TILE)
    c = (0.5 / own) * twice((GR if HAS_R else GS) + start, i, j, n, n, 1, TILE)
    write_both(V, v, i, j, SIZE, TILE)
    write_both(V + AREA, c, i, j, SIZE, TILE)
    write_both(V + 3 * AREA, r, i, j, SIZE, TILE)
    if t == 0:
        tl.store(facts + 4 * matrix, mu)
        tl.store(facts + 4 * matrix + 1, unit)
        tl.store(facts + 4 * matrix + 2, own)
        tl.store(left + matrix, tl.where((mu > 0) & (mu < 1e36), 0, 1))


@triton.jit
def half_turn_kernel(
    scratch, left, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """(mu R) C."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    TILES: tl.constexpr = SIZE // TILE
    matrix, t = whereabouts(TILES * TILES)
    if tl.load(left + matrix) == 0:
        V = scratch + matrix * (BUFFERS * AREA)
        x = multiply(V + 3 * AREA, V + AREA, t // TILES, t % TILES, SIZE, TILE, DEPTH)
        write(V + 4 * AREA, x, t // TILES, t % TILES, SIZE, TILE)


@triton.jit
def turn_kernel(
    scratch, facts, left, GS, n, HAS_S: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C = GS - R GR R, given (mu R) GR."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if tl.load(left + matrix) == 0:
        V = scratch + matrix * (BUFFERS * AREA)
        mu, unit = tl.load(facts + 4 * matrix), tl.load(facts + 4 * matrix + 1)
        i, j = corner(t)
        c = multiply(V + 4 * AREA, V + 3 * AREA, i, j, SIZE, TILE, DEPTH)
        c *= -tl.load(facts + 4 * matrix + 2) / (mu * mu) / unit
        if HAS_S:
            c += (0.5 / unit) * twice(GS + matrix * n * n, i, j, n, n, 1, TILE)
        write_both(V + AREA, c, i, j, SIZE, TILE)


@triton.jit
def survey_kernel(
    scratch, sums, left, n, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr
):  # fmt: skip
    """(mu R) C, and what moments of V are made of."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    TILES: tl.constexpr = SIZE // TILE
    FULL: tl.constexpr = TILES * TILES
    HALF: tl.constexpr = TILES * (TILES + 1) // 2
    matrix, t = whereabouts(FULL + HALF)
    if tl.load(left + matrix) == 0:
        V = scratch + matrix * (BUFFERS * AREA)
        whole = t < FULL
        i, j, weight = lower(tl.maximum(t - FULL, 0))
        i, j = tl.where(whole, t // TILES, i), tl.where(whole, t % TILES, j)
        left_factor, right_factor = tl.where(whole, V + 3 * AREA, V), tl.where(whole, V + AREA, V)
        x = multiply(left_factor, right_factor, i, j, SIZE, TILE, DEPTH)
        if whole:
            write(V + 4 * AREA, x, i, j, SIZE, TILE)
        else:
            v = read(V, i, j, SIZE, TILE)
            slot = sums + matrix * (SUMS * SLOTS) + 2 * SLOTS + t - FULL
            tl.store(slot, _total(v * identity(i, j, n, TILE)))
            tl.store(slot + SLOTS, weight * _total(v * v))
            tl.store(slot + 2 * SLOTS, weight * _total(v * x))
            tl.store(slot + 3 * SLOTS, weight * _total(x * x))


@triton.jit
def begin_kernel(
    scratch, sums, facts, left, n, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr
):  # fmt: skip
    """C' and the first X, if the spectrum is easy."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    V = scratch + matrix * (BUFFERS * AREA)
    sums += matrix * (SUMS * SLOTS)
    m1 = collect(sums + 2 * SLOTS, HALF, SLOTS) / n
    m2 = collect(sums + 3 * SLOTS, HALF, SLOTS) / n
    m3 = collect(sums + 4 * SLOTS, HALF, SLOTS) / n
    m4 = collect(sums + 5 * SLOTS, HALF, SLOTS) / n
    top = tl.maximum(bound_around_mean(m1, m2, m3, m4, n), 0.01)
    centre, _, rate = chebyshev(top)
    if (tl.load(left + matrix) == 0) & (rate < EASY):
        i, j = corner(t)
        c = read(V + AREA, i, j, SIZE, TILE) + multiply(V + 4 * AREA, V + 3 * AREA, i, j, SIZE, TILE, DEPTH)
        write(V + AREA, c, i, j, SIZE, TILE)
        write(V + 2 * AREA, c / centre, i, j, SIZE, TILE)
        write_both(V + 5 * AREA, c / centre, i, j, SIZE, TILE)
        if t == 0:
            tl.store(facts + 4 * matrix + 3, top)
    elif t == 0:
        tl.store(left + matrix, 1)


@triton.jit(do_not_specialize=["step"])
def iterate_kernel(
    scratch, sums, facts, left, out, n, ridge, step,
    SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """A step, counted from one, for matrices that need it; what is good enough then is the result.

    With a ridge that goes through the scratch: its share needs the trace.
    """
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if tl.load(left + matrix) == 0:
        centre, width, rate = chebyshev(tl.load(facts + 4 * matrix + 3))
        share = width / centre
        error = 2 * rate
        for _ in range(1, step):
            share = 1 / (2 * centre / width - share)
            error *= rate
        if error > WANTED:
            V = scratch + matrix * (BUFFERS * AREA)
            X, new = V + (4 + step % 2) * AREA, V + (5 - step % 2) * AREA
            less = 1 / (2 * centre / width - share)
            i, j = corner(t)
            x = read(X, i, j, SIZE, TILE)
            turned = multiply_both(V, X, i, j, SIZE, TILE, DEPTH)
            d = (2 * less / width) * (read(V + AREA, i, j, SIZE, TILE) - 4 * x - turned)
            d += less * share * read(V + 2 * AREA, i, j, SIZE, TILE)
            x += d
            if (error * rate > WANTED) | (ridge != 0):
                write(V + 2 * AREA, d, i, j, SIZE, TILE)
                write_both(new, x, i, j, SIZE, TILE)
                tl.store(sums + matrix * (SUMS * SLOTS) + 6 * SLOTS + t, _total(x * identity(i, j, n, TILE)))
            else:
                scale = tl.load(facts + 4 * matrix + 1) / tl.load(facts + 4 * matrix)
                deliver(out + matrix * n * n, scale * x, i, j, n, TILE)


@triton.jit
def ridge_kernel(
    scratch, sums, facts, left, out, n, ridge, SIZE: tl.constexpr, TILE: tl.constexpr, SLOTS: tl.constexpr
):  # fmt: skip
    """The result with the ridge's share."""
    AREA: tl.constexpr = 2 * SIZE * SIZE
    HALF: tl.constexpr = (SIZE // TILE) * (SIZE // TILE + 1) // 2
    matrix, t = whereabouts(HALF)
    if tl.load(left + matrix) == 0:
        _, _, rate = chebyshev(tl.load(facts + 4 * matrix + 3))
        error = 2 * rate
        step = 0
        while error > WANTED:
            error *= rate
            step += 1
        X = scratch + matrix * (BUFFERS * AREA) + (5 - step % 2) * AREA
        i, j = corner(t)
        x = read(X, i, j, SIZE, TILE)
        trace = collect(sums + matrix * (SUMS * SLOTS) + 6 * SLOTS, HALF, SLOTS)
        x += (ridge / n) * trace * identity(i, j, n, TILE)
        scale = tl.load(facts + 4 * matrix + 1) / tl.load(facts + 4 * matrix)
        deliver(out + matrix * n * n, scale * x, i, j, n, TILE)
