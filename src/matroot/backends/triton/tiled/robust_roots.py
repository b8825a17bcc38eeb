"""Roots of the matrices that the fast path defers: one launch, a group of programs per matrix.

Buffers of a group: 0 X, the matrix with the scale of the input, 1 M = Z Y; 2, 3 and 4, 5 are two pairs, of which one
holds Y and Z, the other M^2 and P; the next Y and Z replace those, and the pairs swap.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import STEPS, TAYLOR_THRESHOLD, choose_schedule, eigenvalue_bound, total
from ..scaling import floor_log2, power_of_two, times_power_of_two
from .split_integer import SUM_ROWS, add_product, any_deferred, load_float32, polynomial_product, store_float32
from .tiles import (
    BUFFERS,
    FLAGS,
    ROBUST_COUNTER,
    SLOTS,
    group_barrier,
    identity,
    is_deferred,
    load_slots,
    load_symmetric,
    lower_tile_count,
    lower_tile_index,
    sqrt_power_of_two,
    store_result,
    sum_slots,
    weighted_lower_tile,
)


@triton.jit
def _store_input(
    X, source, sums, n, stride_row, stride_column, rank, programs_per_matrix, side, TILE: tl.constexpr
):  # fmt: skip
    """The symmetric part of the input; of each tile the largest modulus, NaN unless all is finite, and the trace."""
    for t in range(rank, lower_tile_count(side, TILE), programs_per_matrix):
        i, j = lower_tile_index(t)
        x = load_symmetric(source, i, j, n, stride_row, stride_column, TILE)
        size = tl.max(tl.max(tl.abs(x), 1), 0)
        tl.store(sums + t, size)
        tl.store(sums + SLOTS + t, total(x - x))
        trace = total(identity(i, j, n, TILE) * times_power_of_two(x, -floor_log2(size)))
        tl.store(sums + 2 * SLOTS + t, trace)
        store_float32(X, x, i, j, True, side, TILE)


@triton.jit
def _store_square(
    X, Q, sums, n, s, t, shift, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """(s t X + shift I)^2, and the terms of the moments of s t X + shift I."""
    for tile in range(rank, lower_tile_count(side, TILE), programs_per_matrix):
        i, j, weight = weighted_lower_tile(tile)
        eye = identity(i, j, n, TILE)
        square = polynomial_product(X, X, i, j, n, s, t, 2 * shift, 1.0, 0.0, False, side, TILE, DEPTH)
        square += shift * shift * eye
        x = load_float32(X, i, j, side, TILE) * s * t + shift * eye
        tl.store(sums + 3 * SLOTS + tile, total(x * eye))
        tl.store(sums + 4 * SLOTS + tile, weight * total(x * x))
        tl.store(sums + 5 * SLOTS + tile, weight * total(square * square))
        store_float32(Q, square, i, j, True, side, TILE)


@triton.jit
def _store_first_step(
    X, Q, Y, n, s, t, shift, steps, theta, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """Y and Z after the first step of a schedule for eigenvalues up to theta."""
    inverse = 1.0 / theta
    root = tl.sqrt(inverse)
    z2 = tl.load(steps + 2) * root * inverse * inverse
    z1 = tl.load(steps + 1) * root * inverse
    z0 = tl.load(steps) * root + z1 * shift
    for tile in range(rank, lower_tile_count(side, TILE), programs_per_matrix):
        i, j = lower_tile_index(tile)
        y = polynomial_product(X, Q, i, j, n, s, t, z0, z1, z2, True, side, TILE, DEPTH)
        z = z1 * (load_float32(X, i, j, side, TILE) * s * t) + z2 * load_float32(Q, i, j, side, TILE)
        z += z0 * identity(i, j, n, TILE)
        store_float32(Y, y + shift * z, i, j, True, side, TILE)
        store_float32(Y + side * side, z, i, j, True, side, TILE)


@triton.jit
def _store_residual(
    M, Y, sums, n, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """M = Z Y and the terms of the sum of squares of M - I."""
    tile_rows = side // TILE
    zeros = tl.zeros((TILE, TILE), tl.float32)
    for t in range(rank, tile_rows * tile_rows, programs_per_matrix):
        i, j = t // tile_rows, t % tile_rows
        m = add_product(zeros, Y + side * side, Y, i, j, side, TILE, DEPTH)
        residual = m - identity(i, j, n, TILE)
        tl.store(sums + 6 * SLOTS + t, total(residual * residual))
        store_float32(M, m, i, j, False, side, TILE)


@triton.jit
def _store_step(
    M, Y, Q, n, c, counter, target, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """Y T and T Z in place of Q and P, T the polynomial of M with coefficients c; returns the target of the barrier."""
    tile_rows = side // TILE
    all_tiles = tile_rows * tile_rows
    lower_tiles = lower_tile_count(side, TILE)
    P, Z = Q + side * side, Y + side * side
    zeros = tl.zeros((TILE, TILE), tl.float32)
    for t in range(rank, all_tiles, programs_per_matrix):
        i, j = t // tile_rows, t % tile_rows
        square = add_product(zeros, M, M, i, j, side, TILE, DEPTH)
        m = load_float32(M, i, j, side, TILE)
        store_float32(Q, square, i, j, False, side, TILE)
        p = tl.load(c + 4) * square + tl.load(c + 3) * m + tl.load(c + 2) * identity(i, j, n, TILE)
        store_float32(P, p, i, j, False, side, TILE)
    target = group_barrier(counter, target, programs_per_matrix)
    for t in range(rank, all_tiles, programs_per_matrix):
        i, j = t // tile_rows, t % tile_rows
        m = tl.load(c + 1) * load_float32(M, i, j, side, TILE) + tl.load(c) * identity(i, j, n, TILE)
        store_float32(M, add_product(m, P, Q, i, j, side, TILE, DEPTH), i, j, False, side, TILE)
    target = group_barrier(counter, target, programs_per_matrix)
    for t in range(rank, 2 * lower_tiles, programs_per_matrix):
        i, j = lower_tile_index(t % lower_tiles)
        left = tl.where(t < lower_tiles, Y, M)
        right = tl.where(t < lower_tiles, M, Z)
        x = add_product(zeros, left, right, i, j, side, TILE, DEPTH)
        # M is not symmetric: without the mirrored tile, rounding errors that it amplifies would stay.
        mirrored = add_product(zeros, left, right, j, i, side, TILE, DEPTH)
        x = 0.5 * (x + tl.trans(mirrored))
        store_float32(tl.where(t < lower_tiles, Q, P), x, i, j, True, side, TILE)
    return target


# Neither the number and size of the groups nor the size of the matrices is a reason to compile again. Where matrices
# may end anywhere in a tile, the divisibility of their strides is of no use either.
@triton.jit(do_not_specialize=["batch", "groups", "programs_per_matrix", "n", "stride_batch", "stride_row"])
def robust_roots_kernel(
    A, S, R, table, scratch, sums, deferred, batch, groups, programs_per_matrix,
    n, stride_batch, stride_row, stride_column, ridge, max_shift,
    side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The robust branch of ``roots_kernel`` on chip, for the matrices that are ``deferred``.

    The scratch holds BUFFERS float32 matrices for each of the ``groups``, the sums SUM_ROWS rows of SLOTS.
    """
    buffer_stride = side * side
    all_tiles = (side // TILE) * (side // TILE)
    lower_tiles = lower_tile_count(side, TILE)
    group = tl.program_id(0) // programs_per_matrix
    rank = tl.program_id(0) % programs_per_matrix
    X = scratch + group.to(tl.int64) * (BUFFERS * buffer_stride)
    M = X + buffer_stride
    sums += group * (SUM_ROWS * SLOTS)
    counter = deferred + group * FLAGS + ROBUST_COUNTER
    target = programs_per_matrix
    for matrix in range(group, tl.where(any_deferred(deferred, batch), batch, 0), groups):
        if is_deferred(deferred, matrix):
            matrix_64 = tl.cast(matrix, tl.int64)
            source = A + matrix_64 * stride_batch
            _store_input(X, source, sums, n, stride_row, stride_column, rank, programs_per_matrix, side, TILE)
            target = group_barrier(counter, target, programs_per_matrix)

            # Scaled by a power of two in two factors, so that no power of X overflows. X keeps its scale in memory; the
            # identity times ``shift`` is added wherever X is used.
            sizes = load_slots(sums, lower_tiles)
            size = tl.max(sizes, 0)
            nonfinite = sum_slots(sums + SLOTS, lower_tiles)
            exponent = floor_log2(size)
            half = exponent >> 1
            s, t = power_of_two(-half), power_of_two(half - exponent)
            relative = power_of_two(tl.maximum(floor_log2(sizes) - exponent, -126))
            trace = tl.sum(load_slots(sums + 2 * SLOTS, lower_tiles) * relative, 0)
            shift = tl.where(size > 0, (ridge / n) * trace, 1.0)

            attempt = 0
            relative_shift = 0.0 * max_shift
            done = size < 0
            pair = 0 * rank
            while (attempt < 4) & (not done):
                Y = X + (2 + 2 * pair) * buffer_stride
                Q = X + (4 - 2 * pair) * buffer_stride
                _store_square(X, Q, sums, n, s, t, shift, rank, programs_per_matrix, side, TILE, DEPTH)
                target = group_barrier(counter, target, programs_per_matrix)
                m1 = sum_slots(sums + 3 * SLOTS, lower_tiles) / n
                m2 = sum_slots(sums + 4 * SLOTS, lower_tiles) / n
                m4 = sum_slots(sums + 5 * SLOTS, lower_tiles) / n
                theta = 1.02 * eigenvalue_bound(m2, m4, n)
                schedule = tl.where(attempt > 0, 2, choose_schedule(m1, m2))
                steps = table + schedule * (STEPS * 5)
                _store_first_step(
                    X, Q, Y, n, s, t, shift, steps, theta, rank, programs_per_matrix, side, TILE, DEPTH
                )  # fmt: skip
                target = group_barrier(counter, target, programs_per_matrix)

                step = 1
                iterating = theta == theta
                while iterating:
                    Y = X + (2 + 2 * pair) * buffer_stride
                    Q = X + (4 - 2 * pair) * buffer_stride
                    _store_residual(M, Y, sums, n, rank, programs_per_matrix, side, TILE, DEPTH)
                    target = group_barrier(counter, target, programs_per_matrix)
                    residual = sum_slots(sums + 6 * SLOTS, all_tiles)
                    done = residual < TAYLOR_THRESHOLD
                    # Once the residual is small, the last step of every schedule, a Taylor polynomial, is the best.
                    c = steps + tl.where(done, STEPS - 1, tl.minimum(step, STEPS - 1)) * 5
                    target = _store_step(
                        M, Y, Q, n, c, counter, target, rank, programs_per_matrix, side, TILE, DEPTH
                    )  # fmt: skip
                    if done:
                        tl.debug_barrier()  # every program continues with the tiles it stored
                    else:
                        target = group_barrier(counter, target, programs_per_matrix)
                    pair = 1 - pair
                    step += 1
                    # Steps beyond the longest schedule enlarge a small singular value by 2.46 each: a residual that is
                    # still large then means a singular matrix.
                    max_steps = tl.where((schedule == 2) & (attempt == 0) & (residual > 0.5), 7, 12)
                    iterating = (not done) & (step < max_steps) & (residual < 1e6)
                if not done:
                    # Singular, negative by rounding, or indefinite.
                    next_shift = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, max_shift))
                    shift += (next_shift - relative_shift) * theta
                    relative_shift = next_shift
                    attempt = tl.where(theta == theta, attempt + 1, 4)

            nan_mask = tl.where((nonfinite == 0) & (done | (size == 0)), 0.0, float("nan"))
            scale = sqrt_power_of_two(exponent)
            zero_mask = tl.where(size > 0, 1.0, 0.0)
            for tile in range(rank, 2 * lower_tiles, programs_per_matrix):
                i, j = lower_tile_index(tile % lower_tiles)
                x = load_float32(X + (2 + 2 * pair + tile // lower_tiles) * buffer_stride, i, j, side, TILE)
                x = zero_mask * tl.where(tile < lower_tiles, scale, 1 / scale) * x + nan_mask
                root = tl.where(tile < lower_tiles, S, R) + matrix_64 * n * n
                store_result(root, x, i, j, n, TILE)
