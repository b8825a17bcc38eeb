"""Gradients on a GPU of matrices too large for one program: one launch, a group of programs per matrix."""

import triton
import triton.language as tl

from .triton_kernels import _bound, _total
from .triton_solve import chebyshev
from .triton_tiles import (
    BUFFERS,
    LINE,
    SUMS,
    collect,
    corner,
    deliver,
    identity,
    load,
    meet,
    norm,
    note,
    product,
    store,
    symmetric,
    tile,
)


@triton.jit
def _unit(sums, count, SLOTS: tl.constexpr):
    """A power of two that leaves a norm of 8 to 16 of what was noted: half numbers hold C and C' then."""
    size, _ = norm(sums, count, SLOTS)
    return tl.exp2(tl.minimum(tl.maximum(tl.floor(size) - 3, -120.0), 120.0))


# The shape of the groups is no reason to compile again.
@triton.jit(do_not_specialize=["batch", "groups", "members"])
def tiled_solve_kernel(
    S, R, GS, GR, out, scratch, sums, counters, batch, groups, members, n, ridge,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """``solve_kernel`` of ``triton_solve`` for ``batch`` matrices, each shared by ``members`` programs.

    Always by Chebyshev's iteration: it has one product between meetings, and two of its factors never change.
    """
    AREA: tl.constexpr = 2 * SIZE * SIZE
    TILES: tl.constexpr = SIZE // TILE
    FULL: tl.constexpr = TILES * TILES
    HALF: tl.constexpr = TILES * (TILES + 1) // 2
    group = tl.program_id(0) // members
    rank = tl.program_id(0) % members
    V = scratch + group.to(tl.int64) * (BUFFERS * AREA)
    C = V + AREA
    move = V + 2 * AREA
    inverse = V + 3 * AREA  # until X begins, in turns in the last two
    RC = V + 4 * AREA
    sums += group * (SUMS * SLOTS)
    counter = counters + group * LINE
    due = members
    for matrix in range(group, batch, groups):
        for t in range(rank, HALF, members):
            i, j, weight = tile(t, True, TILES)
            s = symmetric(S, matrix, i, j, n, TILE)
            r = symmetric(R, matrix, i, j, n, TILE)
            tl.store(sums + t, weight * _total(s * s))
            tl.store(sums + SLOTS + t, weight * _total(r * r))
            if HAS_S:
                note(sums + 2 * SLOTS, t, symmetric(GS, matrix, i, j, n, TILE), weight, SLOTS)
            if HAS_R:
                note(sums + 4 * SLOTS, t, symmetric(GR, matrix, i, j, n, TILE), weight, SLOTS)
        due = meet(counter, due, members)
        size = collect(sums, HALF, SLOTS)
        zero = size == 0
        mu = tl.sqrt(tl.sqrt(size) / tl.sqrt(collect(sums + SLOTS, HALF, SLOTS)))
        mu = tl.where(zero, 1.0, mu)
        if HAS_R:
            first = _unit(sums + 4 * SLOTS, HALF, SLOTS)
            unit = first / (mu * mu)
            if HAS_S:
                unit = tl.maximum(unit, _unit(sums + 2 * SLOTS, HALF, SLOTS))
        else:
            first = _unit(sums + 2 * SLOTS, HALF, SLOTS)
            unit = first
        for t in range(rank, HALF, members):
            i, j = corner(t)
            r = mu * symmetric(R, matrix, i, j, n, TILE)
            v = symmetric(S, matrix, i, j, n, TILE) / mu + r - 2 * identity(i, j, n, TILE)
            store(inverse, r, i, j, True, SIZE, TILE)
            store(V, v, i, j, True, SIZE, TILE)
            store(C, symmetric(GR if HAS_R else GS, matrix, i, j, n, TILE) / first, i, j, True, SIZE, TILE)
        due = meet(counter, due, members)
        if HAS_R:
            for t in range(rank, FULL, members):
                i, j, weight = tile(t, False, TILES)
                store(RC, product(inverse, C, i, j, SIZE, TILE, DEPTH), i, j, False, SIZE, TILE)
            due = meet(counter, due, members)
            for t in range(rank, HALF, members):
                i, j = corner(t)
                c = product(RC, inverse, i, j, SIZE, TILE, DEPTH) * (-first / (mu * mu) / unit)
                if HAS_S:
                    c += symmetric(GS, matrix, i, j, n, TILE) / unit
                store(C, c, i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
        for t in range(rank, FULL + HALF, members):
            whole = t < FULL
            i, j, weight = tile(tl.where(whole, t, t - FULL), t >= FULL, TILES)
            x = product(tl.where(whole, inverse, V), tl.where(whole, C, V), i, j, SIZE, TILE, DEPTH)
            if whole:
                store(RC, x, i, j, False, SIZE, TILE)
            else:
                v = load(V, i, j, SIZE, TILE)
                slot = sums + 2 * SLOTS + t - FULL
                tl.store(slot, _total(v * identity(i, j, n, TILE)))
                tl.store(slot + SLOTS, weight * _total(v * v))
                tl.store(slot + 2 * SLOTS, weight * _total(v * x))
                tl.store(slot + 3 * SLOTS, weight * _total(x * x))
        due = meet(counter, due, members)

        # The bound is the tighter around the mean.
        m1 = collect(sums + 2 * SLOTS, HALF, SLOTS) / n
        m2 = collect(sums + 3 * SLOTS, HALF, SLOTS) / n
        m3 = collect(sums + 4 * SLOTS, HALF, SLOTS) / n
        m4 = collect(sums + 5 * SLOTS, HALF, SLOTS) / n
        d2 = tl.maximum(m2 - m1 * m1, 0.0)
        d4 = m4 + m1 * (-4 * m3 + m1 * (6 * m2 - 3 * m1 * m1))
        top = tl.where(zero, 1.0, tl.maximum(tl.minimum(_bound(m2, m4, n), m1 + _bound(d2, d4, n)), 0.01))
        centre, width, rate = chebyshev(top)
        for t in range(rank, HALF, members):
            i, j = corner(t)
            c = load(C, i, j, SIZE, TILE) + product(RC, inverse, i, j, SIZE, TILE, DEPTH)
            store(C, c, i, j, True, SIZE, TILE)
            store(move, c / centre, i, j, True, SIZE, TILE)
            store(V + 5 * AREA, c / centre, i, j, True, SIZE, TILE)
        due = meet(counter, due, members)
        share = width / centre
        error = 2 * rate
        flip = 0 * rank
        scale = tl.where(zero, 0.0, unit / mu)
        result = out + tl.cast(matrix, tl.int64) * n * n
        going = rank >= 0
        while going:
            X = V + (5 - flip) * AREA
            flip = 1 - flip
            less = 1 / (2 * centre / width - share)
            error *= rate
            going = error > 1e-6
            for t in range(rank, HALF, members):
                i, j = corner(t)
                x = load(X, i, j, SIZE, TILE)
                both = product(V, X, i, j, SIZE, TILE, DEPTH) + product(X, V, i, j, SIZE, TILE, DEPTH)
                d = (2 * less / width) * (load(C, i, j, SIZE, TILE) - 4 * x - both)
                d += less * share * load(move, i, j, SIZE, TILE)
                x += d
                tl.store(sums + 6 * SLOTS + t, _total(x * identity(i, j, n, TILE)))
                if going | (ridge != 0):
                    store(move, d, i, j, True, SIZE, TILE)
                    store(V + (5 - flip) * AREA, x, i, j, True, SIZE, TILE)
                else:
                    deliver(result, scale * x, i, j, n, TILE)
            share = less
            if going | (ridge != 0):
                due = meet(counter, due, members)
        if ridge != 0:
            share = (ridge / n) * collect(sums + 6 * SLOTS, HALF, SLOTS)
            for t in range(rank, HALF, members):
                i, j = corner(t)
                x = load(V + (5 - flip) * AREA, i, j, SIZE, TILE) + share * identity(i, j, n, TILE)
                deliver(result, scale * x, i, j, n, TILE)
