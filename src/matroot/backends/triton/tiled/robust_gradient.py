"""Gradients on a GPU of matrices too large for one program: one launch, a group of programs per matrix."""

import triton
import triton.language as tl

from ..on_chip.gradient import initial_inverse
from ..primitives import centred_eigenvalue_bound, total
from .tiles import (
    BUFFERS,
    LINE,
    SLOTS,
    SUMS,
    any_left,
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


# Neither the shape of the groups nor the size of the matrices is a reason to compile again.
@triton.jit(do_not_specialize=["batch", "groups", "members", "n"])
def tiled_smith_kernel(
    S, R, GS, GR, out, scratch, sums, left, batch, groups, members, n, ridge,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The doubling of ``solve_kernel`` for the matrices that are ``left``, each shared by ``members`` programs."""
    room = side * side
    across = side // TILE
    all_tiles = across * across
    lower_tiles = across * (across + 1) // 2
    group = tl.program_id(0) // members
    rank = tl.program_id(0) % members
    first = scratch + group.to(tl.int64) * (BUFFERS * room)
    C = first + room  # at last X
    V = first + 3 * room
    Q = first + 4 * room
    W = first + 5 * room
    sums += group * (SUMS * SLOTS)
    counter = left + group * LINE + 1
    due = members
    area = tl.cast(n, tl.int64) * n
    blank = tl.zeros((TILE, TILE), tl.float32)
    wanted = 1e-6
    for matrix in range(group, tl.where(any_left(left, batch), batch, 0), groups):
        if tl.load(left + matrix * LINE) != 0:
            inverse = first
            for t in range(rank, lower_tiles, members):
                i, j, weight = lower(t)
                s = 0.5 * twice(S + area * matrix, i, j, n, n, 1, TILE)
                r = 0.5 * twice(R + area * matrix, i, j, n, n, 1, TILE)
                tl.store(sums + t, weight * total(s * s))
                tl.store(sums + SLOTS + t, weight * total(r * r))
                store(inverse, r, i, j, True, side, TILE)
                store(V, s, i, j, True, side, TILE)
                store(C, twice((GR if HAS_R else GS) + area * matrix, i, j, n, n, 1, TILE), i, j, True, side, TILE)
            due = meet(counter, due, members)
            norm = collect(sums, lower_tiles)
            zero = norm == 0
            mu = tl.sqrt(tl.sqrt(norm) / tl.sqrt(collect(sums + SLOTS, lower_tiles)))
            mu = tl.where(zero, 1.0, mu)

            RC = first + 2 * room
            if HAS_R:
                for t in range(rank, all_tiles, members):
                    x = product(blank, inverse, C, t // across, t % across, side, TILE, DEPTH)
                    store(RC, mu * x, t // across, t % across, False, side, TILE)
                due = meet(counter, due, members)
                for t in range(rank, lower_tiles, members):
                    i, j = corner(t)
                    x = product(blank, RC, inverse, i, j, side, TILE, DEPTH) * (-1 / mu)
                    if HAS_S:
                        x += twice(GS + area * matrix, i, j, n, n, 1, TILE)
                    store(C, x, i, j, True, side, TILE)
                due = meet(counter, due, members)
            for t in range(rank, all_tiles + lower_tiles, members):
                if t < all_tiles:
                    x = product(blank, inverse, C, t // across, t % across, side, TILE, DEPTH)
                    store(RC, mu * x, t // across, t % across, False, side, TILE)
                else:
                    i, j = corner(t - all_tiles)
                    x = load(V, i, j, side, TILE) / mu + mu * load(inverse, i, j, side, TILE)
                    store(V, x - 2 * identity(i, j, n, TILE), i, j, True, side, TILE)
            due = meet(counter, due, members)
            for t in range(rank, 2 * lower_tiles, members):
                i, j, weight = lower(t % lower_tiles)
                one = tl.where(t < lower_tiles, RC, V)
                other = tl.where(t < lower_tiles, inverse, V)
                x = product(blank, one, other, i, j, side, TILE, DEPTH)
                if t < lower_tiles:
                    x = load(C, i, j, side, TILE) + mu * x
                else:
                    v = load(V, i, j, side, TILE)
                    slot = sums + 2 * SLOTS + t - lower_tiles
                    tl.store(slot, total(v * identity(i, j, n, TILE)))
                    tl.store(slot + SLOTS, weight * total(v * v))
                    tl.store(slot + 2 * SLOTS, weight * total(v * x))
                    tl.store(slot + 3 * SLOTS, weight * total(x * x))
                store(tl.where(t < lower_tiles, C, Q), x, i, j, True, side, TILE)
            due = meet(counter, due, members)

            m1 = collect(sums + 2 * SLOTS, lower_tiles) / n
            m2 = collect(sums + 3 * SLOTS, lower_tiles) / n
            m3 = collect(sums + 4 * SLOTS, lower_tiles) / n
            m4 = collect(sums + 5 * SLOTS, lower_tiles) / n
            top = tl.where(zero, 1.0, tl.maximum(centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01))
            p, k0, k1, k2, error = initial_inverse(top)
            least = 2 + p
            K = first
            for t in range(rank, lower_tiles, members):
                i, j = corner(t)
                eye = identity(i, j, n, TILE)
                k = k0 * eye + k1 * load(V, i, j, side, TILE) + k2 * load(Q, i, j, side, TILE)
                x = polynomial(V, Q, i, j, n, 1.0, 1.0, k0, k1, k2, True, side, TILE, DEPTH)
                store(K, k, i, j, True, side, TILE)
                store(W, 2 * eye - x - least * k, i, j, True, side, TILE)
            due = meet(counter, due, members)
            flip = 0 * rank
            going = error == error
            while going:
                # Newton's iteration, and a factor that centres what is left over, from 0 to error^2, around zero.
                K = first + 2 * flip * room
                gain = 2 / (2 - error * error)
                flip = 1 - flip
                for t in range(rank, lower_tiles, members):
                    i, j = corner(t)
                    x = product(blank, K, W, i, j, side, TILE, DEPTH)
                    store(first + 2 * flip * room, gain * x, i, j, True, side, TILE)
                due = meet(counter, due, members)
                error *= 0.5 * gain * error
                going = error > 0.7 * wanted  # counts twice
                if going:
                    K = first + 2 * flip * room
                    for t in range(rank, lower_tiles, members):
                        i, j = corner(t)
                        x = least * load(K, i, j, side, TILE) - 2 * identity(i, j, n, TILE)
                        x = product(x, V, K, i, j, side, TILE, DEPTH)
                        store(W, -x, i, j, True, side, TILE)
                    due = meet(counter, due, members)

            # With F = I - 2 p K and H = F K the first two terms are K C K + H C H, and K^2 makes both H and F^2.
            K = first + 2 * flip * room
            HC = first + 2 * (1 - flip) * room
            for t in range(rank, lower_tiles, members):
                i, j = corner(t)
                x = product(blank, K, K, i, j, side, TILE, DEPTH)
                k = load(K, i, j, side, TILE)
                store(V, k - 2 * p * x, i, j, True, side, TILE)
                store(Q, identity(i, j, n, TILE) - 4 * p * (k - p * x), i, j, True, side, TILE)
            due = meet(counter, due, members)
            for t in range(rank, 2 * all_tiles, members):
                i, j, weight = tile(t % all_tiles, False, across)
                x = product(blank, tl.where(t < all_tiles, K, V), C, i, j, side, TILE, DEPTH)
                store(tl.where(t < all_tiles, W, HC), x, i, j, False, side, TILE)
            due = meet(counter, due, members)
            for t in range(rank, lower_tiles, members):
                i, j = corner(t)
                x = product(blank, W, K, i, j, side, TILE, DEPTH)
                x = product(x, HC, V, i, j, side, TILE, DEPTH)
                tl.store(sums + 6 * SLOTS + t, total(x * identity(i, j, n, TILE)))
                store(C, x, i, j, True, side, TILE)
            due = meet(counter, due, members)
            factor = (p - 2) / (p + 2)
            factor *= factor
            flip = 0 * rank
            while factor * factor > wanted:
                F = Q - flip * room  # V is free
                flip = 1 - flip
                factor *= factor
                for t in range(rank, all_tiles + tl.where(factor * factor > wanted, lower_tiles, 0), members):
                    i, j, weight = tile(tl.where(t < all_tiles, t, t - all_tiles), t >= all_tiles, across)
                    x = product(blank, F, tl.where(t < all_tiles, C, F), i, j, side, TILE, DEPTH)
                    store(tl.where(t < all_tiles, W, Q - flip * room), x, i, j, t >= all_tiles, side, TILE)
                due = meet(counter, due, members)
                for t in range(rank, lower_tiles, members):
                    i, j = corner(t)
                    x = product(load(C, i, j, side, TILE), W, F, i, j, side, TILE, DEPTH)
                    tl.store(sums + 6 * SLOTS + t, total(x * identity(i, j, n, TILE)))
                    store(C, x, i, j, True, side, TILE)
                due = meet(counter, due, members)

            scale = tl.where(zero, 0.0, p / mu)
            share = (ridge / n) * collect(sums + 6 * SLOTS, lower_tiles)
            for t in range(rank, lower_tiles, members):
                i, j = corner(t)
                x = load(C, i, j, side, TILE) + share * identity(i, j, n, TILE)
                deliver(out + area * matrix, scale * x, i, j, n, TILE)
            tl.debug_barrier()  # the next matrix takes the place
