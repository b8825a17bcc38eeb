"""Roots on a GPU of matrices too large for one program: one launch, a group of programs per matrix."""

import triton
import triton.language as tl

from ..primitives import STEPS, TAYLOR_THRESHOLD, choose_schedule, eigenvalue_bound, total
from .tiles import (
    BUFFERS,
    LINE,
    SLOTS,
    SUMS,
    any_left,
    collect,
    corner,
    deliver,
    floor_log2,
    identity,
    load,
    lower,
    meet,
    polynomial,
    product,
    slots,
    store,
    twice,
)


# Neither the shape of the groups nor the size of the matrices is a reason to compile again.
@triton.jit(do_not_specialize=["batch", "groups", "members", "n"])
def tiled_roots_kernel(
    A, S, R, table, scratch, sums, left, batch, groups, members,
    n, stride_batch, stride_row, stride_column, ridge, widest,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """``roots_kernel`` of ``triton_kernels`` for the matrices that are ``left``, each shared by ``members`` programs.

    The scratch holds BUFFERS matrices for each of the ``groups``, the sums SUMS rows of SLOTS.
    """
    room = side * side
    across = side // TILE
    all_tiles = across * across
    lower_tiles = across * (across + 1) // 2
    group = tl.program_id(0) // members
    rank = tl.program_id(0) % members
    X = scratch + group.to(tl.int64) * (BUFFERS * room)
    M = X + room
    sums += group * (SUMS * SLOTS)
    counter = left + group * LINE + 1
    due = members
    blank = tl.zeros((TILE, TILE), tl.float32)
    for matrix in range(group, tl.where(any_left(left, batch), batch, 0), groups):
        if tl.load(left + matrix * LINE) != 0:
            source = A + tl.cast(matrix, tl.int64) * stride_batch
            for t in range(rank, lower_tiles, members):
                i, j = corner(t)
                x = twice(source, i, j, n, stride_row, stride_column, TILE)
                size = tl.max(tl.max(tl.abs(x), 1), 0)
                tl.store(sums + t, size)
                tl.store(sums + SLOTS + t, total(x - x))  # NaN if anything is not finite
                half = tl.floor(0.5 * floor_log2(size))
                trace = total(identity(i, j, n, TILE) * (x * tl.exp2(-half)) * tl.exp2(half - floor_log2(size)))
                tl.store(sums + 2 * SLOTS + t, trace)
                store(X, x, i, j, True, side, TILE)
            due = meet(counter, due, members)

            # Scaled by a power of two, in two factors, so that no power leaves the range of float32; X keeps its scale
            # in memory. The identity times ``more`` is added to it wherever it is used.
            sizes = slots(sums, lower_tiles)
            size = tl.max(sizes, 0)
            spread = collect(sums + SLOTS, lower_tiles)
            exponent = floor_log2(size)
            half = tl.floor(0.5 * exponent)
            down, further = tl.exp2(-half), tl.exp2(half - exponent)
            trace = tl.sum(slots(sums + 2 * SLOTS, lower_tiles) * tl.exp2(floor_log2(sizes) - exponent), 0)
            more = tl.where(size > 0, (ridge / n) * trace, 1.0)

            attempt = 0
            shift = 0.0 * widest
            done = size < 0
            flip = 0 * rank
            while (attempt < 4) & (not done):
                # Y, Z are one pair of buffers, Q and P the other; new Y and Z take the place of Q and P.
                Y = X + (2 + 2 * flip) * room
                Q = X + (4 - 2 * flip) * room
                for t in range(rank, lower_tiles, members):
                    i, j, weight = lower(t)
                    eye = identity(i, j, n, TILE)
                    square = polynomial(X, X, i, j, n, down, further, 2 * more, 1.0, 0.0, False, side, TILE, DEPTH)
                    square += more * more * eye
                    x = load(X, i, j, side, TILE) * down * further + more * eye
                    tl.store(sums + 3 * SLOTS + t, total(x * eye))
                    tl.store(sums + 4 * SLOTS + t, weight * total(x * x))
                    tl.store(sums + 5 * SLOTS + t, weight * total(square * square))
                    store(Q, square, i, j, True, side, TILE)
                due = meet(counter, due, members)
                m1 = collect(sums + 3 * SLOTS, lower_tiles) / n
                m2 = collect(sums + 4 * SLOTS, lower_tiles) / n
                m4 = collect(sums + 5 * SLOTS, lower_tiles) / n
                theta = 1.02 * eigenvalue_bound(m2, m4, n)
                schedule = tl.where(attempt > 0, 2, choose_schedule(m1, m2))
                steps = table + schedule * (STEPS * 5)
                inverse = 1.0 / theta
                root = tl.sqrt(inverse)
                z2 = tl.load(steps + 2) * root * inverse * inverse
                z1 = tl.load(steps + 1) * root * inverse
                z0 = tl.load(steps) * root + z1 * more
                for t in range(rank, lower_tiles, members):
                    i, j = corner(t)
                    y = polynomial(X, Q, i, j, n, down, further, z0, z1, z2, True, side, TILE, DEPTH)
                    z = z1 * (load(X, i, j, side, TILE) * down * further) + z2 * load(Q, i, j, side, TILE)
                    z += z0 * identity(i, j, n, TILE)
                    store(Y, y + more * z, i, j, True, side, TILE)
                    store(Y + room, z, i, j, True, side, TILE)
                due = meet(counter, due, members)

                step = 1
                going = theta == theta
                while going:
                    Y = X + (2 + 2 * flip) * room
                    Q = X + (4 - 2 * flip) * room
                    for t in range(rank, all_tiles, members):
                        i, j = t // across, t % across
                        m = product(blank, Y + room, Y, i, j, side, TILE, DEPTH)
                        off = m - identity(i, j, n, TILE)
                        tl.store(sums + 6 * SLOTS + t, total(off * off))
                        store(M, m, i, j, False, side, TILE)
                    due = meet(counter, due, members)
                    gap = collect(sums + 6 * SLOTS, all_tiles)
                    done = gap < TAYLOR_THRESHOLD
                    # The last step of every schedule is as good as Taylor's once the gap is small, and follows it.
                    c = steps + tl.where(done, STEPS - 1, tl.minimum(step, STEPS - 1)) * 5
                    for t in range(rank, all_tiles, members):
                        i, j = t // across, t % across
                        eye = identity(i, j, n, TILE)
                        square = product(blank, M, M, i, j, side, TILE, DEPTH)
                        m = load(M, i, j, side, TILE)
                        store(Q, square, i, j, False, side, TILE)
                        p = tl.load(c + 4) * square + tl.load(c + 3) * m + tl.load(c + 2) * eye
                        store(Q + room, p, i, j, False, side, TILE)
                    due = meet(counter, due, members)
                    for t in range(rank, all_tiles, members):
                        i, j = t // across, t % across
                        m = tl.load(c + 1) * load(M, i, j, side, TILE) + tl.load(c) * identity(i, j, n, TILE)
                        m = product(m, Q + room, Q, i, j, side, TILE, DEPTH)
                        store(M, m, i, j, False, side, TILE)
                    due = meet(counter, due, members)
                    for t in range(rank, 2 * lower_tiles, members):
                        i, j = corner(t % lower_tiles)
                        one = tl.where(t < lower_tiles, Y, M)
                        other = tl.where(t < lower_tiles, M, Y + room)
                        x = product(blank, one, other, i, j, side, TILE, DEPTH)
                        # M is not symmetric: half of Y T would keep what rounding added to it.
                        y = product(blank, one, other, j, i, side, TILE, DEPTH)
                        x = 0.5 * (x + tl.trans(y))
                        store(tl.where(t < lower_tiles, Q, Q + room), x, i, j, True, side, TILE)
                    if done:
                        tl.debug_barrier()  # every program goes on with its own tiles
                    else:
                        due = meet(counter, due, members)
                    flip = 1 - flip
                    step += 1
                    # Steps beyond the longest schedule enlarge a small singular value by 2.46 each: what is left far
                    # behind then is as good as singular.
                    most = tl.where((schedule == 2) & (attempt == 0) & (gap > 0.5), 7, 12)
                    going = (not done) & (step < most) & (gap < 1e6)
                if not done:
                    # Singular, negative by rounding, or indefinite.
                    wider = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, widest))
                    more += (wider - shift) * theta
                    shift = wider
                    attempt = tl.where(theta == theta, attempt + 1, 4)

            # X is twice the matrix, divided by 2^exponent.
            poison = tl.where((spread == 0) & (done | (size == 0)), 0.0, float("nan"))
            scale = tl.sqrt(0.5 * tl.exp2(exponent - 2 * half)) * tl.exp2(half)
            keep = tl.where(size > 0, 1.0, 0.0)
            for t in range(rank, 2 * lower_tiles, members):
                i, j = corner(t % lower_tiles)
                x = load(X + (2 + 2 * flip + t // lower_tiles) * room, i, j, side, TILE)
                x = keep * tl.where(t < lower_tiles, scale, 1 / scale) * x + poison
                target = tl.where(t < lower_tiles, S, R) + tl.cast(matrix, tl.int64) * n * n
                deliver(target, x, i, j, n, TILE)
