"""Gradients on a GPU of large matrices that are easy, tile by tile.

Chebyshev's iteration as in ``triton_solve``, twice, in phases, between which all is in memory. A matrix that is not
easy is marked as ``left``, and the phases that follow pass it by. The scratch of a matrix is BUFFERS matrices, V, C,
the second right side, mu R, (mu R) C and X, and SUMS rows of SLOTS sums; facts are mu, the unit that C is in, and at
first was, and what V reaches. For the iteration half numbers will do: X of both times is where (mu R) C and X are, in
turns with what would be their lower halves.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import RESIDUAL_SCALE, chebyshev_interval
from ..primitives import centred_eigenvalue_bound, total
from .split_fp16 import (
    BUFFERS,
    HALF,
    SUMS,
    anticommutator,
    anticommutator_roughly,
    area,
    fresh,
    half_of,
    multiply,
    multiply_roughly,
    norm_unit,
    note,
    read,
    read_high,
    write,
    write_both,
)
from .tiles import SLOTS, collect, corner, deliver, given, identity, leave, lower, slots, twice

STEPS = tl.constexpr(4)
"""Phases of the iteration, each time."""
WANTED = tl.constexpr(4e-6)
"""Bound of the relative error that both times leave; what they do leave is about half of it."""
EASY = tl.constexpr(0.22)
"""What a step may leave of the error so that all of them leave less than what is wanted."""


@triton.jit
def measure(
    R, GS, GR, sums, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """What means of the inverse root and norms of the cotangents are made of."""
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    i, j, weight = lower(t)
    r = given(R + start, i, j, n, n, 1, TILE)
    tl.store(sums + t, total(r * identity(i, j, n, TILE)))
    tl.store(sums + SLOTS + t, weight * total(r * r))
    if HAS_S:
        note(sums + 2 * SLOTS, t, 0.5 * twice(GS + start, i, j, n, n, 1, TILE), weight)
    if HAS_R:
        note(sums + 4 * SLOTS, t, 0.5 * twice(GR + start, i, j, n, n, 1, TILE), weight)


@triton.jit
def prepare(
    S, R, GS, GR, scratch, sums, facts, left, n,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, matrix, t, side, TILE: tl.constexpr,
):  # fmt: skip
    """V less twice the identity, mu R, and the cotangent of the inverse root or else of the root.

    The best 1/mu would be the geometric mean of the largest and least eigenvalue of R; those of covariances are many
    small ones and few large ones, for which that of their mean and root mean square comes nearer than means of S.
    """
    room, lower_tiles = area(side), half_of(side, TILE)
    start = matrix * n * n
    sums += matrix * (SUMS * SLOTS)
    V = scratch + matrix * (BUFFERS * room)
    i, j = corner(t)
    v, r = given(S + start, i, j, n, n, 1, TILE), given(R + start, i, j, n, n, 1, TILE)
    c = twice((GR if HAS_R else GS) + start, i, j, n, n, 1, TILE)
    traces, squares = slots(sums, lower_tiles), slots(sums + SLOTS, lower_tiles)
    own = norm_unit(sums + (4 if HAS_R else 2) * SLOTS, lower_tiles)
    mu = tl.sqrt(n / tl.sum(traces, 0) * tl.sqrt(n / tl.sum(squares, 0)))
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
    """(mu R) C and what its trace is made of, and what moments of V are, for which half precision will do."""
    room = area(side)
    across = side // TILE
    all_tiles = across * across
    V = scratch + matrix * (BUFFERS * room)
    whole = t < all_tiles
    i, j, weight = lower(tl.maximum(t - all_tiles, 0))
    i, j = tl.where(whole, t // across, i), tl.where(whole, t % across, j)
    sums += matrix * (SUMS * SLOTS)
    if whole:
        x = multiply(V + 3 * room, V + room, i, j, side, TILE, DEPTH)
        write(V + 4 * room, x, i, j, side, TILE)
        if i == j:
            tl.store(sums + i, total(x * identity(i, j, n, TILE)))
    else:
        v = read(V, i, j, side, TILE)
        x = multiply_roughly(V, V, i, j, side, TILE, DEPTH)
        slot = sums + 2 * SLOTS + t - all_tiles
        tl.store(slot, total(v * identity(i, j, n, TILE)))
        tl.store(slot + SLOTS, weight * total(v * v))
        tl.store(slot + 2 * SLOTS, weight * total(v * x))
        tl.store(slot + 3 * SLOTS, weight * total(x * x))


@triton.jit
def begin(
    scratch, sums, facts, left, n, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C' and the first X, if the spectrum is easy."""
    room, lower_tiles = area(side), half_of(side, TILE)
    V = scratch + matrix * (BUFFERS * room)
    sums += matrix * (SUMS * SLOTS)
    first, second = slots(sums + 2 * SLOTS, lower_tiles), slots(sums + 3 * SLOTS, lower_tiles)
    third, fourth = slots(sums + 4 * SLOTS, lower_tiles), slots(sums + 5 * SLOTS, lower_tiles)
    m1, m2, m3, m4 = tl.sum(first, 0) / n, tl.sum(second, 0) / n, tl.sum(third, 0) / n, tl.sum(fourth, 0) / n
    top = tl.maximum(1.001 * centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01)
    centre, _, rate = chebyshev_interval(top)
    if rate < EASY:
        i, j = corner(t)
        c = read(V + room, i, j, side, TILE) + multiply(V + 4 * room, V + 3 * room, i, j, side, TILE, DEPTH)
        write(V + room, c, i, j, side, TILE)
        write_both(_place(V, side, 0, False), c / centre, i, j, side, TILE, HALF)
        if t == 0:
            tl.store(facts + 4 * matrix + 3, top)
    elif t == 0:
        leave(left, matrix, True)


@triton.jit
def _error(rate, step):
    """Bound of the relative error before a step, counted from one."""
    return 2 * tl.exp2(step * tl.log2(rate))


@triton.jit
def steps_of(top) -> tuple:
    """How many steps are needed the first time, and the second; never none, as V is taken to reach 0.01 at least, nor
    more than there are phases, though ``top`` may be anything where a matrix is left."""
    _, _, rate = chebyshev_interval(top)
    steps = 2
    while (steps < 2 * STEPS) & (2 * _error(rate, steps + 2) > WANTED):
        steps += 1
    return (steps + 1) // 2, steps // 2


@triton.jit
def _share(rate, step):
    """The quotient of the values of two successive Chebyshev polynomials, the second of this degree."""
    now, before = _error(rate, step), _error(rate, step - 1)
    return rate * (4 + before * before) / (4 + now * now)


@triton.jit
def _place(V, side, step, SECOND: tl.constexpr):
    """Where X is after a step, in the place of that before the one before."""
    return V + (4 if SECOND else 5) * area(side) + step % 2 * side * side


@triton.jit
def iterate(
    scratch, sums, facts, out, n, ridge, top, first, step,
    SECOND: tl.constexpr, LAST: tl.constexpr, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A step, counted from one; the last of all makes the result, given how many were needed the first time."""
    _, width, rate = chebyshev_interval(top)
    V = scratch + matrix * (BUFFERS * area(side))
    X, target = _place(V, side, step - 1, SECOND), _place(V, side, step, SECOND)
    i, j = corner(t)
    more = _share(rate, step + 1)
    factor, kept = 2 * more / width, more * _share(rate, step)
    x = -factor * anticommutator_roughly(V, X, i, j, side, TILE, DEPTH)
    x += factor * read_high(V + (2 if SECOND else 1) * area(side), i, j, side, TILE)
    x += (1 + kept - 4 * factor) * read_high(X, i, j, side, TILE)
    # Before the first step X was zero, and nothing is there.
    x -= tl.where(step == 1, 0.0, kept) * read_high(tl.where(step == 1, X, target), i, j, side, TILE)
    if LAST:
        x = read_high(_place(V, side, first, False), i, j, side, TILE) + x * (1 / RESIDUAL_SCALE)
        _finish(x, sums, facts, out, n, ridge, matrix, i, j, side, TILE)
    else:
        write_both(target, x, i, j, side, TILE, HALF)


@triton.jit
def again(scratch, top, first, matrix, t, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """What the first X leaves as the second right side, and the first X for that."""
    centre, _, _ = chebyshev_interval(top)
    room = area(side)
    V = scratch + matrix * (BUFFERS * room)
    X = _place(V, side, first, False)
    i, j = corner(t)
    turned = anticommutator(V, X, i, j, side, TILE, DEPTH)
    c = (read(V + room, i, j, side, TILE) - 4 * read_high(X, i, j, side, TILE) - turned) * RESIDUAL_SCALE
    write(V + 2 * room, c, i, j, side, TILE, HALF)
    write_both(_place(V, side, 0, True), c / centre, i, j, side, TILE, HALF)


@triton.jit
def _finish(x, sums, facts, out, n, ridge, matrix, i, j, side, TILE: tl.constexpr):
    """The result, with the ridge's share: of S X + X S = C the trace of X is half that of R C."""
    if ridge != 0:
        trace = 0.5 * collect(sums + matrix * (SUMS * SLOTS), side // TILE)
        x += (ridge / n) * trace * identity(i, j, n, TILE)
    scale = fresh(facts + 4 * matrix + 1) / fresh(facts + 4 * matrix)
    deliver(out + matrix * n * n, scale * x, i, j, n, TILE)
