"""Gradients on a GPU of matrices too large for one program: one launch, a group of programs per matrix."""

import triton
import triton.language as tl

from .triton_kernels import _total, bound_around_mean
from .triton_solve import near_inverse
from .triton_tiles import (
    BUFFERS,
    LINE,
    SUMS,
    collect,
    corner,
    deliver,
    identity,
    load,
    lower,
    meet,
    polynomial,
    product,
    store,
    tile,
    twice,
)


# The shape of the groups is no reason to compile again.
@triton.jit(do_not_specialize=["batch", "groups", "members"])
def tiled_smith_kernel(
    S, R, GS, GR, out, scratch, sums, left, batch, groups, members, n, ridge,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """The doubling of ``solve_kernel`` for the matrices that are ``left``, each shared by ``members`` programs."""
    AREA: tl.constexpr = SIZE * SIZE
    TILES: tl.constexpr = SIZE // TILE
    FULL: tl.constexpr = TILES * TILES
    HALF: tl.constexpr = TILES * (TILES + 1) // 2
    group = tl.program_id(0) // members
    rank = tl.program_id(0) % members
    first = scratch + group.to(tl.int64) * (BUFFERS * AREA)
    C = first + AREA  # at last X
    V = first + 3 * AREA
    Q = first + 4 * AREA
    W = first + 5 * AREA
    sums += group * (SUMS * SLOTS)
    counter = left + group * LINE + 1
    due = members
    area = tl.cast(n, tl.int64) * n
    blank = tl.zeros((TILE, TILE), tl.float32)
    wanted = 1e-6
    for matrix in range(group, batch, groups):
        if tl.load(left + matrix * LINE) != 0:
            inverse = first
            for t in range(rank, HALF, members):
                i, j, weight = lower(t)
                s = 0.5 * twice(S + area * matrix, i, j, n, n, 1, TILE)
                r = 0.5 * twice(R + area * matrix, i, j, n, n, 1, TILE)
                tl.store(sums + t, weight * _total(s * s))
                tl.store(sums + SLOTS + t, weight * _total(r * r))
                store(inverse, r, i, j, True, SIZE, TILE)
                store(V, s, i, j, True, SIZE, TILE)
                store(C, twice((GR if HAS_R else GS) + area * matrix, i, j, n, n, 1, TILE), i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
            norm = collect(sums, HALF, SLOTS)
            zero = norm == 0
            mu = tl.sqrt(tl.sqrt(norm) / tl.sqrt(collect(sums + SLOTS, HALF, SLOTS)))
            mu = tl.where(zero, 1.0, mu)

            RC = first + 2 * AREA
            if HAS_R:
                for t in range(rank, FULL, members):
                    x = product(blank, inverse, C, t // TILES, t % TILES, SIZE, TILE, DEPTH)
                    store(RC, mu * x, t // TILES, t % TILES, False, SIZE, TILE)
                due = meet(counter, due, members)
                for t in range(rank, HALF, members):
                    i, j = corner(t)
                    x = product(blank, RC, inverse, i, j, SIZE, TILE, DEPTH) * (-1 / mu)
                    if HAS_S:
                        x += twice(GS + area * matrix, i, j, n, n, 1, TILE)
                    store(C, x, i, j, True, SIZE, TILE)
                due = meet(counter, due, members)
            for t in range(rank, FULL + HALF, members):
                if t < FULL:
                    x = product(blank, inverse, C, t // TILES, t % TILES, SIZE, TILE, DEPTH)
                    store(RC, mu * x, t // TILES, t % TILES, False, SIZE, TILE)
                else:
                    i, j = corner(t - FULL)
                    x = load(V, i, j, SIZE, TILE) / mu + mu * load(inverse, i, j, SIZE, TILE)
                    store(V, x - 2 * identity(i, j, n, TILE), i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
            for t in range(rank, 2 * HALF, members):
                i, j, weight = lower(t % HALF)
                one = tl.where(t < HALF, RC, V)
                other = tl.where(t < HALF, inverse, V)
                x = product(blank, one, other, i, j, SIZE, TILE, DEPTH)
                if t < HALF:
                    x = load(C, i, j, SIZE, TILE) + mu * x
                else:
                    v = load(V, i, j, SIZE, TILE)
                    slot = sums + 2 * SLOTS + t - HALF
                    tl.store(slot, _total(v * identity(i, j, n, TILE)))
                    tl.store(slot + SLOTS, weight * _total(v * v))
                    tl.store(slot + 2 * SLOTS, weight * _total(v * x))
                    tl.store(slot + 3 * SLOTS, weight * _total(x * x))
                store(tl.where(t < HALF, C, Q), x, i, j, True, SIZE, TILE)
            due = meet(counter, due, members)

            m1 = collect(sums + 2 * SLOTS, HALF, SLOTS) / n
            m2 = collect(sums + 3 * SLOTS, HALF, SLOTS) / n
            m3 = collect(sums + 4 * SLOTS, HALF, SLOTS) / n
            m4 = collect(sums + 5 * SLOTS, HALF, SLOTS) / n
            top = tl.where(zero, 1.0, tl.maximum(bound_around_mean(m1, m2, m3, m4, n), 0.01))
            p, k0, k1, k2, error = near_inverse(top)
            least = 2 + p
            K = first
            for t in range(rank, HALF, members):
                i, j = corner(t)
                eye = identity(i, j, n, TILE)
                k = k0 * eye + k1 * load(V, i, j, SIZE, TILE) + k2 * load(Q, i, j, SIZE, TILE)
                x = polynomial(V, Q, i, j, n, 1.0, 1.0, k0, k1, k2, True, SIZE, TILE, DEPTH)
                store(K, k, i, j, True, SIZE, TILE)
                store(W, 2 * eye - x - least * k, i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
            flip = 0 * rank
            going = error == error
            while going:
                # Newton's iteration, and a factor that centres what is left over, from 0 to error^2, around zero.
                K = first + 2 * flip * AREA
                gain = 2 / (2 - error * error)
                flip = 1 - flip
                for t in range(rank, HALF, members):
                    i, j = corner(t)
                    x = product(blank, K, W, i, j, SIZE, TILE, DEPTH)
                    store(first + 2 * flip * AREA, gain * x, i, j, True, SIZE, TILE)
                due = meet(counter, due, members)
                error *= 0.5 * gain * error
                going = error > 0.7 * wanted  # counts twice
                if going:
                    K = first + 2 * flip * AREA
                    for t in range(rank, HALF, members):
                        i, j = corner(t)
                        x = least * load(K, i, j, SIZE, TILE) - 2 * identity(i, j, n, TILE)
                        x = product(x, V, K, i, j, SIZE, TILE, DEPTH)
                        store(W, -x, i, j, True, SIZE, TILE)
                    due = meet(counter, due, members)

            # With F = I - 2 p K and H = F K the first two terms are K C K + H C H, and K^2 makes both H and F^2.
            K = first + 2 * flip * AREA
            HC = first + 2 * (1 - flip) * AREA
            for t in range(rank, HALF, members):
                i, j = corner(t)
                x = product(blank, K, K, i, j, SIZE, TILE, DEPTH)
                k = load(K, i, j, SIZE, TILE)
                store(V, k - 2 * p * x, i, j, True, SIZE, TILE)
                store(Q, identity(i, j, n, TILE) - 4 * p * (k - p * x), i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
            for t in range(rank, 2 * FULL, members):
                i, j, weight = tile(t % FULL, False, TILES)
                x = product(blank, tl.where(t < FULL, K, V), C, i, j, SIZE, TILE, DEPTH)
                store(tl.where(t < FULL, W, HC), x, i, j, False, SIZE, TILE)
            due = meet(counter, due, members)
            for t in range(rank, HALF, members):
                i, j = corner(t)
                x = product(blank, W, K, i, j, SIZE, TILE, DEPTH)
                x = product(x, HC, V, i, j, SIZE, TILE, DEPTH)
                tl.store(sums + 6 * SLOTS + t, _total(x * identity(i, j, n, TILE)))
                store(C, x, i, j, True, SIZE, TILE)
            due = meet(counter, due, members)
            factor = (p - 2) / (p + 2)
            factor *= factor
            flip = 0 * rank
            while factor * factor > wanted:
                F = Q - flip * AREA  # V is free
                flip = 1 - flip
                factor *= factor
                for t in range(rank, FULL + tl.where(factor * factor > wanted, HALF, 0), members):
                    i, j, weight = tile(tl.where(t < FULL, t, t - FULL), t >= FULL, TILES)
                    x = product(blank, F, tl.where(t < FULL, C, F), i, j, SIZE, TILE, DEPTH)
                    store(tl.where(t < FULL, W, Q - flip * AREA), x, i, j, t >= FULL, SIZE, TILE)
                due = meet(counter, due, members)
                for t in range(rank, HALF, members):
                    i, j = corner(t)
                    x = product(load(C, i, j, SIZE, TILE), W, F, i, j, SIZE, TILE, DEPTH)
                    tl.store(sums + 6 * SLOTS + t, _total(x * identity(i, j, n, TILE)))
                    store(C, x, i, j, True, SIZE, TILE)
                due = meet(counter, due, members)

            scale = tl.where(zero, 0.0, p / mu)
            share = (ridge / n) * collect(sums + 6 * SLOTS, HALF, SLOTS)
            for t in range(rank, HALF, members):
                i, j = corner(t)
                x = load(C, i, j, SIZE, TILE) + share * identity(i, j, n, TILE)
                deliver(out + area * matrix, scale * x, i, j, n, TILE)
            tl.debug_barrier()  # the next matrix takes the place
