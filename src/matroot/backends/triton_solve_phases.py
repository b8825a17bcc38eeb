"""Gradients on a GPU of large matrices that are easy, tile by tile.

Chebyshev's iteration as in ``triton_solve``, twice, in phases, between which all is in memory. A matrix that is not
easy is marked as ``left``, and the phases that follow pass it by. The scratch of a matrix is BUFFERS matrices, V, C,
the last move, mu R or the X of the first time, and two for X in turns, and SUMS rows of SLOTS sums; facts are mu, the
unit that C is in, and at first was, and what V reaches.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .triton_kernels import _total, bound_around_mean
from .triton_planes import (
    BUFFERS,
    SUMS,
    area,
    fresh,
    half_of,
    multiply,
    multiply_half,
    multiply_roughly,
    norm_unit,
    note,
    read,
    read_diagonal,
    read_high,
    turn_roughly,
    write,
    write_both,
)
from .triton_solve import AGAIN, chebyshev
from .triton_tiles import SLOTS, collect, corner, deliver, given, identity, leave, lower, twice

STEPS = tl.constexpr(4)
"""Phases of the iteration, each time."""
WANTED = tl.constexpr(1.7e-3)
"""Bound of the relative error of each time; what is left is a third of it or less."""
EASY = tl.constexpr(0.22)
"""What a step may leave of the error so that all of them leave less than what is wanted."""


@triton.jit
def measure(
    S, R, GS, GR, sums, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """What norms are made of, of both roots and the cotangents."""
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    i, j, weight = lower(t)
    s = given(S + start, i, j, n, n, 1, TILE)
    tl.store(sums + t, weight * _total(s * s))
    r = given(R + start, i, j, n, n, 1, TILE)
    tl.store(sums + SLOTS + t, weight * _total(r * r))
    if HAS_S:
        note(sums + 2 * SLOTS, t, 0.5 * twice(GS + start, i, j, n, n, 1, TILE), weight)
    if HAS_R:
        note(sums + 4 * SLOTS, t, 0.5 * twice(GR + start, i, j, n, n, 1, TILE), weight)


@triton.jit
def prepare(
    S, R, GS, GR, scratch, sums, facts, left, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """V less twice the identity, mu R, and the cotangent of the inverse root or else of the root."""
    room, lower_tiles = area(side), half_of(side, TILE)
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    V = scratch + matrix * (BUFFERS * room)
    i, j = corner(t)
    v, r = given(S + start, i, j, n, n, 1, TILE), given(R + start, i, j, n, n, 1, TILE)
    c = twice((GR if HAS_R else GS) + start, i, j, n, n, 1, TILE)
    mu = tl.sqrt(tl.sqrt(collect(sums, lower_tiles)) / tl.sqrt(collect(sums + SLOTS, lower_tiles)))
    own = norm_unit(sums + (4 if HAS_R else 2) * SLOTS, lower_tiles)
    unit = own
    if HAS_R:
        unit /= mu * mu
        if HAS_S:
            unit = tl.maximum(unit, norm_unit(sums + 2 * SLOTS, lower_tiles))
    r *= mu
    v = (1 / mu) * v + r - 2 * identity(i, j, n, TILE)
    c *= 0.5 / own
    write_both(V, v, i, j, side, TILE)
    write_both(V + room, c, i, j, side, TILE)
    write_both(V + 3 * room, r, i, j, side, TILE)
    if t == 0:
        tl.store(facts + 4 * matrix, mu)
        tl.store(facts + 4 * matrix + 1, unit)
        tl.store(facts + 4 * matrix + 2, own)
        leave(left, matrix, not ((mu > 0) & (mu < 1e36)))


@triton.jit
def half_turn(
    scratch, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """(mu R) C."""
    room = area(side)
    across = side // TILE
    V = scratch + matrix * (BUFFERS * room)
    x = multiply(V + 3 * room, V + room, t // across, t % across, side, TILE, DEPTH)
    write(V + 4 * room, x, t // across, t % across, side, TILE)


@triton.jit
def turn(
    scratch, facts, GS, n, HAS_S: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C = GS - R GR R, given (mu R) GR."""
    room = area(side)
    V = scratch + matrix * (BUFFERS * room)
    mu, unit = fresh(facts + 4 * matrix), fresh(facts + 4 * matrix + 1)
    i, j = corner(t)
    c = multiply(V + 4 * room, V + 3 * room, i, j, side, TILE, DEPTH)
    c *= -fresh(facts + 4 * matrix + 2) / (mu * mu) / unit
    if HAS_S:
        c += (0.5 / unit) * twice(GS + matrix * n * n, i, j, n, n, 1, TILE)
    write_both(V + room, c, i, j, side, TILE)


@triton.jit
def survey(
    scratch, sums, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """(mu R) C, and what moments of V are made of, for which half precision will do."""
    room = area(side)
    across = side // TILE
    all_tiles = across * across
    V = scratch + matrix * (BUFFERS * room)
    whole = t < all_tiles
    i, j, weight = lower(tl.maximum(t - all_tiles, 0))
    i, j = tl.where(whole, t // across, i), tl.where(whole, t % across, j)
    if whole:
        write(V + 4 * room, multiply(V + 3 * room, V + room, i, j, side, TILE, DEPTH), i, j, side, TILE)
    else:
        v = read(V, i, j, side, TILE)
        x = multiply_roughly(V, V, i, j, side, TILE, DEPTH)
        slot = sums + matrix * (SUMS * SLOTS) + 2 * SLOTS + t - all_tiles
        tl.store(slot, _total(v * identity(i, j, n, TILE)))
        tl.store(slot + SLOTS, weight * _total(v * v))
        tl.store(slot + 2 * SLOTS, weight * _total(v * x))
        tl.store(slot + 3 * SLOTS, weight * _total(x * x))


@triton.jit
def begin(
    scratch, sums, facts, left, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C' and the first X, if the spectrum is easy."""
    room, lower_tiles = area(side), half_of(side, TILE)
    V = scratch + matrix * (BUFFERS * room)
    sums += matrix * (SUMS * SLOTS)
    m1 = collect(sums + 2 * SLOTS, lower_tiles) / n
    m2 = collect(sums + 3 * SLOTS, lower_tiles) / n
    m3 = collect(sums + 4 * SLOTS, lower_tiles) / n
    m4 = collect(sums + 5 * SLOTS, lower_tiles) / n
    top = tl.maximum(1.001 * bound_around_mean(m1, m2, m3, m4, n), 0.01)
    centre, _, rate = chebyshev(top)
    if rate < EASY:
        i, j = corner(t)
        c = read(V + room, i, j, side, TILE) + multiply(V + 4 * room, V + 3 * room, i, j, side, TILE, DEPTH)
        write(V + room, c, i, j, side, TILE)
        write(V + 2 * room, c / centre, i, j, side, TILE)
        write_both(V + 5 * room, c / centre, i, j, side, TILE)
        if t == 0:
            tl.store(facts + 4 * matrix + 3, top)
    elif t == 0:
        leave(left, matrix, True)


@triton.jit
def _error(rate, step):
    """Bound of the relative error before a step, counted from one."""
    return 2 * tl.exp2(step * tl.log2(rate))


@triton.jit
def steps_of(top):
    """How many steps are needed each time; never none, as V is taken to reach 0.01 at least."""
    _, _, rate = chebyshev(top)
    steps = 1
    while _error(rate, steps + 1) > WANTED:
        steps += 1
    return steps


@triton.jit
def _share(rate, step):
    """The quotient of the values of two successive Chebyshev polynomials, the second of this degree."""
    now, before = _error(rate, step), _error(rate, step - 1)
    return rate * (4 + before * before) / (4 + now * now)


@triton.jit
def iterate(
    scratch, top, step, SECOND: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """A step, counted from one, for matrices that need it."""
    _, width, rate = chebyshev(top)
    steps = steps_of(top)
    if step <= steps:
        room = area(side)
        V = scratch + matrix * (BUFFERS * room)
        X, new = _turns(V, room, step + (steps + 1 if SECOND else 0))
        share, more = _share(rate, step), _share(rate, step + 1)
        i, j = corner(t)
        turned = turn_roughly(V, X, i, j, side, TILE, DEPTH)
        x = read(X, i, j, side, TILE)
        d = (2 * more / width) * (read(V + room, i, j, side, TILE) - 4 * x - turned)
        d += more * share * read(V + 2 * room, i, j, side, TILE)
        write(V + 2 * room, d, i, j, side, TILE)
        write_both(new, x + d, i, j, side, TILE)


@triton.jit
def again(scratch, top, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """What the first X, rounded to half numbers, leaves as the second right side, and the first X for that."""
    centre, _, _ = chebyshev(top)
    room = area(side)
    V = scratch + matrix * (BUFFERS * room)
    X, new = _turns(V, room, steps_of(top) + 1)
    i, j = corner(t)
    turned = multiply_half(V, X, i, j, side, TILE, DEPTH) + tl.trans(multiply_half(V, X, j, i, side, TILE, DEPTH))
    x = read_high(X, i, j, side, TILE)
    c = (read(V + room, i, j, side, TILE) - 4 * x - turned) * AGAIN
    write(V + room, c, i, j, side, TILE)
    write(V + 2 * room, c / centre, i, j, side, TILE)
    write(V + 3 * room, x, i, j, side, TILE)
    write_both(new, c / centre, i, j, side, TILE)


@triton.jit
def finish(scratch, facts, top, out, n, ridge, matrix, t, side, TILE: tl.constexpr):
    """The result, with the ridge's share."""
    room = area(side)
    V = scratch + matrix * (BUFFERS * room)
    first = V + 3 * room
    second, _ = _turns(V, room, 2 * steps_of(top) + 2)
    i, j = corner(t)
    x = read(first, i, j, side, TILE) + read(second, i, j, side, TILE) * (1 / AGAIN)
    if ridge != 0:
        trace = tl.sum(read_diagonal(first, side) + read_diagonal(second, side) * (1 / AGAIN), 0)
        x += (ridge / n) * trace * identity(i, j, n, TILE)
    scale = fresh(facts + 4 * matrix + 1) / fresh(facts + 4 * matrix)
    deliver(out + matrix * n * n, scale * x, i, j, n, TILE)


@triton.jit
def _turns(V, room, turn) -> tuple:
    """Where X is before a step, and after it."""
    return V + (4 + turn % 2) * room, V + (5 - turn % 2) * room
