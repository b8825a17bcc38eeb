"""Gradients of the matrices that the fast path defers: one launch, a group of programs per matrix.

The Lyapunov equation is preconditioned as on chip: with V = S/mu + mu R and C' = C + (mu R) C (mu R), S X + X S = C is
V X + X V = C'/mu. Smith's method then sums by doubling, X = 2 p (K C' K + H C' H + ...)/mu with K = (V + p)^-1,
F = I - 2 p K and H = F K. C is in a unit, a power of two, so that no product overflows or underflows.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..on_chip.gradient import initial_inverse
from ..primitives import centred_eigenvalue_bound, total
from ..scaling import times_power_of_two
from .split_integer import (
    SUM_ROWS,
    add_product,
    any_deferred,
    load_float32,
    polynomial_product,
    store_float32,
    tile_index,
)
from .tiles import (
    BUFFERS,
    FLAGS,
    ROBUST_COUNTER,
    SLOTS,
    frobenius_norm,
    group_barrier,
    identity,
    is_deferred,
    load_symmetric,
    lower_tile_count,
    lower_tile_index,
    sandwich_factor,
    sandwich_unit,
    store_result,
    store_tile_norm,
    sum_slots,
    unit_exponent,
    weighted_lower_tile,
)

TOLERANCE = tl.constexpr(1e-6)


@triton.jit
def _store_product(C, A, B, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """C = A B."""
    tile_rows = side // TILE
    zeros = tl.zeros((TILE, TILE), tl.float32)
    for t in range(rank, tile_rows * tile_rows, programs_per_matrix):
        i, j = t // tile_rows, t % tile_rows
        store_float32(C, add_product(zeros, A, B, i, j, side, TILE, DEPTH), i, j, False, side, TILE)


@triton.jit
def _store_norms(
    S, R, GS, GR, sums, n, HAS_S: tl.constexpr, HAS_R: tl.constexpr,
    rank, programs_per_matrix, side, TILE: tl.constexpr,
):  # fmt: skip
    for t in range(rank, lower_tile_count(side, TILE), programs_per_matrix):
        i, j, weight = weighted_lower_tile(t)
        store_tile_norm(sums, t, load_symmetric(S, i, j, n, n, 1, TILE), weight)
        store_tile_norm(sums + 2 * SLOTS, t, load_symmetric(R, i, j, n, n, 1, TILE), weight)
        if HAS_S:
            store_tile_norm(sums + 4 * SLOTS, t, load_symmetric(GS, i, j, n, n, 1, TILE), weight)
        if HAS_R:
            store_tile_norm(sums + 6 * SLOTS, t, load_symmetric(GR, i, j, n, n, 1, TILE), weight)


@triton.jit
def _precondition(
    V, inverse, C, S, R, G, n, mu, unit, rank, programs_per_matrix, side, TILE: tl.constexpr
):  # fmt: skip
    """V less 2 I, mu R and a cotangent in its unit."""
    for t in range(rank, lower_tile_count(side, TILE), programs_per_matrix):
        i, j = lower_tile_index(t)
        s, r = load_symmetric(S, i, j, n, n, 1, TILE), mu * load_symmetric(R, i, j, n, n, 1, TILE)
        store_float32(V, s / mu + r - 2 * identity(i, j, n, TILE), i, j, True, side, TILE)
        store_float32(inverse, r, i, j, True, side, TILE)
        store_float32(C, times_power_of_two(load_symmetric(G, i, j, n, n, 1, TILE), -unit), i, j, True, side, TILE)


@triton.jit
def _store_operator_square(
    C, RC, V, Q, inverse, sums, n, rank, programs_per_matrix, side, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """C' = C + (mu R) C (mu R) in place of C, given (mu R) C; Q = V^2 and the terms of the moments of V."""
    lower_tiles = lower_tile_count(side, TILE)
    zeros = tl.zeros((TILE, TILE), tl.float32)
    for t in range(rank, 2 * lower_tiles, programs_per_matrix):
        i, j, weight = weighted_lower_tile(t % lower_tiles)
        left = tl.where(t < lower_tiles, RC, V)
        right = tl.where(t < lower_tiles, inverse, V)
        x = add_product(zeros, left, right, i, j, side, TILE, DEPTH)
        if t < lower_tiles:
            x += load_float32(C, i, j, side, TILE)
        else:
            v = load_float32(V, i, j, side, TILE)
            slot = sums + 8 * SLOTS + t - lower_tiles
            tl.store(slot, total(v * identity(i, j, n, TILE)))
            tl.store(slot + SLOTS, weight * total(v * v))
            tl.store(slot + 2 * SLOTS, weight * total(v * x))
            tl.store(slot + 3 * SLOTS, weight * total(x * x))
        store_float32(tl.where(t < lower_tiles, C, Q), x, i, j, True, side, TILE)


# Neither the number and size of the groups nor the size of the matrices is a reason to compile again.
@triton.jit(do_not_specialize=["batch", "groups", "programs_per_matrix", "n"])
def robust_gradient_kernel(
    S, R, GS, GR, out, scratch, sums, deferred, batch, groups, programs_per_matrix, n, ridge,
    HAS_S: tl.constexpr, HAS_R: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The robust branch of ``solve_kernel`` on chip, for the matrices that are ``deferred``."""
    buffer_stride = side * side
    tile_rows = side // TILE
    all_tiles = tile_rows * tile_rows
    lower_tiles = lower_tile_count(side, TILE)
    group = tl.program_id(0) // programs_per_matrix
    rank = tl.program_id(0) % programs_per_matrix
    inverse = scratch + group.to(tl.int64) * (BUFFERS * buffer_stride)  # later K
    C = inverse + buffer_stride  # in the end X
    RC = inverse + 2 * buffer_stride  # later the other K, and H C
    V = inverse + 3 * buffer_stride  # later H
    Q = inverse + 4 * buffer_stride  # V^2, later F^2
    W = inverse + 5 * buffer_stride
    sums += group * (SUM_ROWS * SLOTS)
    counter = deferred + group * FLAGS + ROBUST_COUNTER
    target = programs_per_matrix
    matrix_elements = tl.cast(n, tl.int64) * n
    zeros = tl.zeros((TILE, TILE), tl.float32)
    for matrix in range(group, tl.where(any_deferred(deferred, batch), batch, 0), groups):
        if is_deferred(deferred, matrix):
            offset = matrix_elements * matrix
            _store_norms(
                S + offset, R + offset, GS + offset, GR + offset, sums, n, HAS_S, HAS_R,
                rank, programs_per_matrix, side, TILE,
            )  # fmt: skip
            target = group_barrier(counter, target, programs_per_matrix)
            norm, exponent = frobenius_norm(sums, lower_tiles)
            inverse_norm, inverse_exponent = frobenius_norm(sums + 2 * SLOTS, lower_tiles)
            zero = norm == 0
            mu = tl.sqrt(times_power_of_two(norm / inverse_norm, exponent - inverse_exponent))
            mu = tl.where(zero, 1.0, mu)

            G = GR if HAS_R else GS
            cotangent_unit = unit_exponent(sums + (6 if HAS_R else 4) * SLOTS, lower_tiles)
            _precondition(
                V, inverse, C, S + offset, R + offset, G + offset, n, mu, cotangent_unit,
                rank, programs_per_matrix, side, TILE,
            )  # fmt: skip
            target = group_barrier(counter, target, programs_per_matrix)
            unit = cotangent_unit
            if HAS_R:
                # C = GS - R GR R
                unit = sandwich_unit(mu, cotangent_unit)
                if HAS_S:
                    unit = tl.maximum(unit, unit_exponent(sums + 4 * SLOTS, lower_tiles))
                factor = sandwich_factor(mu, cotangent_unit - unit)
                _store_product(RC, inverse, C, rank, programs_per_matrix, side, TILE, DEPTH)
                target = group_barrier(counter, target, programs_per_matrix)
                for t in range(rank, lower_tiles, programs_per_matrix):
                    i, j = lower_tile_index(t)
                    x = -factor * add_product(zeros, RC, inverse, i, j, side, TILE, DEPTH)
                    if HAS_S:
                        x += times_power_of_two(load_symmetric(GS + offset, i, j, n, n, 1, TILE), -unit)
                    store_float32(C, x, i, j, True, side, TILE)
                target = group_barrier(counter, target, programs_per_matrix)
            _store_product(RC, inverse, C, rank, programs_per_matrix, side, TILE, DEPTH)
            target = group_barrier(counter, target, programs_per_matrix)
            _store_operator_square(
                C, RC, V, Q, inverse, sums, n, rank, programs_per_matrix, side, TILE, DEPTH
            )  # fmt: skip
            target = group_barrier(counter, target, programs_per_matrix)

            m1 = sum_slots(sums + 8 * SLOTS, lower_tiles) / n
            m2 = sum_slots(sums + 9 * SLOTS, lower_tiles) / n
            m3 = sum_slots(sums + 10 * SLOTS, lower_tiles) / n
            m4 = sum_slots(sums + 11 * SLOTS, lower_tiles) / n
            spectral_bound = tl.where(zero, 1.0, tl.maximum(centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01))
            p, k0, k1, k2, error = initial_inverse(spectral_bound)
            least = 2 + p
            K = inverse
            for t in range(rank, lower_tiles, programs_per_matrix):
                i, j = lower_tile_index(t)
                eye = identity(i, j, n, TILE)
                k = k0 * eye + k1 * load_float32(V, i, j, side, TILE) + k2 * load_float32(Q, i, j, side, TILE)
                x = polynomial_product(V, Q, i, j, n, 1.0, 1.0, k0, k1, k2, True, side, TILE, DEPTH)
                store_float32(K, k, i, j, True, side, TILE)
                store_float32(W, 2 * eye - x - least * k, i, j, True, side, TILE)
            target = group_barrier(counter, target, programs_per_matrix)
            pair = 0 * rank
            iterating = error == error
            while iterating:
                # Newton's iteration, with a factor that centres the eigenvalues of the residual, from 0 to error^2, at
                # zero.
                K = inverse + 2 * pair * buffer_stride
                gain = 2 / (2 - error * error)
                pair = 1 - pair
                for t in range(rank, lower_tiles, programs_per_matrix):
                    i, j = lower_tile_index(t)
                    x = add_product(zeros, K, W, i, j, side, TILE, DEPTH)
                    store_float32(inverse + 2 * pair * buffer_stride, gain * x, i, j, True, side, TILE)
                target = group_barrier(counter, target, programs_per_matrix)
                error *= 0.5 * gain * error
                iterating = error > 0.7 * TOLERANCE  # K is used twice in each term
                if iterating:
                    K = inverse + 2 * pair * buffer_stride
                    for t in range(rank, lower_tiles, programs_per_matrix):
                        i, j = lower_tile_index(t)
                        x = least * load_float32(K, i, j, side, TILE) - 2 * identity(i, j, n, TILE)
                        x = add_product(x, V, K, i, j, side, TILE, DEPTH)
                        store_float32(W, -x, i, j, True, side, TILE)
                    target = group_barrier(counter, target, programs_per_matrix)

            # The first two terms are K C' K + H C' H; K^2 gives both H and F^2.
            K = inverse + 2 * pair * buffer_stride
            HC = inverse + 2 * (1 - pair) * buffer_stride
            for t in range(rank, lower_tiles, programs_per_matrix):
                i, j = lower_tile_index(t)
                x = add_product(zeros, K, K, i, j, side, TILE, DEPTH)
                k = load_float32(K, i, j, side, TILE)
                store_float32(V, k - 2 * p * x, i, j, True, side, TILE)
                store_float32(Q, identity(i, j, n, TILE) - 4 * p * (k - p * x), i, j, True, side, TILE)
            target = group_barrier(counter, target, programs_per_matrix)
            for t in range(rank, 2 * all_tiles, programs_per_matrix):
                i, j = tile_index(t % all_tiles, False, tile_rows)
                x = add_product(zeros, tl.where(t < all_tiles, K, V), C, i, j, side, TILE, DEPTH)
                store_float32(tl.where(t < all_tiles, W, HC), x, i, j, False, side, TILE)
            target = group_barrier(counter, target, programs_per_matrix)
            for t in range(rank, lower_tiles, programs_per_matrix):
                i, j = lower_tile_index(t)
                x = add_product(zeros, W, K, i, j, side, TILE, DEPTH)
                x = add_product(x, HC, V, i, j, side, TILE, DEPTH)
                tl.store(sums + 12 * SLOTS + t, total(x * identity(i, j, n, TILE)))
                store_float32(C, x, i, j, True, side, TILE)
            target = group_barrier(counter, target, programs_per_matrix)
            factor = (p - 2) / (p + 2)
            factor *= factor
            pair = 0 * rank
            while factor * factor > TOLERANCE:
                F = Q - pair * buffer_stride  # H is no longer needed
                pair = 1 - pair
                factor *= factor
                squares = tl.where(factor * factor > TOLERANCE, lower_tiles, 0)
                for t in range(rank, all_tiles + squares, programs_per_matrix):
                    squaring = t >= all_tiles
                    i, j = tile_index(tl.where(squaring, t - all_tiles, t), squaring, tile_rows)
                    x = add_product(zeros, F, tl.where(squaring, F, C), i, j, side, TILE, DEPTH)
                    store_float32(tl.where(squaring, Q - pair * buffer_stride, W), x, i, j, squaring, side, TILE)
                target = group_barrier(counter, target, programs_per_matrix)
                for t in range(rank, lower_tiles, programs_per_matrix):
                    i, j = lower_tile_index(t)
                    x = add_product(load_float32(C, i, j, side, TILE), W, F, i, j, side, TILE, DEPTH)
                    tl.store(sums + 12 * SLOTS + t, total(x * identity(i, j, n, TILE)))
                    store_float32(C, x, i, j, True, side, TILE)
                target = group_barrier(counter, target, programs_per_matrix)

            scale = tl.where(zero, 0.0, 2 * p / mu)
            ridge_term = (ridge / n) * sum_slots(sums + 12 * SLOTS, lower_tiles)
            for t in range(rank, lower_tiles, programs_per_matrix):
                i, j = lower_tile_index(t)
                x = load_float32(C, i, j, side, TILE) + ridge_term * identity(i, j, n, TILE)
                store_result(out + offset, times_power_of_two(scale * x, unit), i, j, n, TILE)
