"""What ``_inputs`` does to a matrix before and after a method, inside a kernel with one program per matrix."""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import matmul, sum_of_squares, total
from ..scaling import identity, load_scaled, matrix_lanes, power_of_two


@triton.jit
def frobenius(X):
    return tl.sqrt(sum_of_squares(X))


@triton.jit
def symmetric(X):
    return 0.5 * X + 0.5 * tl.trans(X)


@triton.jit
def negative_inverse_by_sweep(X, n, N: tl.constexpr):
    """-X^-1 of a positive definite X, and whether it is: elimination column by column, in place.

    The pivots are those of a Cholesky factorisation. Being symmetric, it is half the work of eliminating a
    right-hand side along, and as accurate: P and Q of an approximant commute, so the inverse's error
    X^-1 E X^-1 becomes X^-1 E (X^-1 P).
    """
    index = tl.arange(0, N)
    row = index[:, None]
    column = index[None, :]
    j = 0
    positive = n > 0
    while (j < n) & positive:
        c = tl.sum(tl.where(row == j, X, 0.0), 0)
        pivot = tl.sum(tl.where(index == j, c, 0.0), 0)
        positive = pivot > 0
        c = tl.where(index == j, -1.0, c) / tl.sqrt(tl.where(positive, pivot, 1.0))
        X = tl.where((row == j) | (column == j), 0.0, X) - c[:, None] * c[None, :]
        j += 1
    return X, positive


@triton.jit
def certify_positive_definite(X, eye, bound, n, PRECISION: tl.constexpr):
    """Whether a few products prove X positive definite, in a fraction of the time of an elimination; if not, it may
    still be.

    Eigenvalues of I - 1.9 X/bound are beyond 1 where those of X are not positive, and within otherwise; powers tell.
    """
    T = eye - (1.9 / bound) * X
    size = sum_of_squares(T)
    step = 0
    while (size > 0.8) & (size < 1.01 * n) & (step < 8):
        T = matmul(T, T, PRECISION)
        size = sum_of_squares(T)
        step += 1
    return size <= 0.8


@triton.jit
def clean(
    A, n, stride_batch, stride_row, stride_column, ridge, strict_tolerance, wide_tolerance,
    N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What ``_inputs.clean`` makes of this program's matrix: it, the identity, the two scales, the NaN mask.

    Eigenvalues may be negative by ``strict_tolerance`` of a bound of the largest, that of float32, and by
    ``wide_tolerance``, that of the dtype of A.
    """
    eye = identity(n, N)
    A += tl.program_id(0).to(tl.int64) * stride_batch
    # A power of four, so that dividing by it and multiplying by its root are exact.
    X, exponent, size = load_scaled(A, n, stride_row, stride_column, True, N)
    X = (X + eye * (ridge / n) * total(X * eye)) / (1 + ridge)

    mean = total(X * eye) / n
    variance = tl.maximum(sum_of_squares(X) / n - mean * mean, 0.0)
    bound = tl.abs(mean) + tl.sqrt((n - 1) * variance)
    definite = certify_positive_definite(X, eye, bound, n, PRECISION)
    if not definite:
        _, definite = negative_inverse_by_sweep(X + strict_tolerance * bound * eye, n, N)
    if (not definite) & (wide_tolerance > strict_tolerance):
        X += wide_tolerance * bound * eye
        _, definite = negative_inverse_by_sweep(X, n, N)
    X = tl.where(definite, X, eye)

    nan_mask = tl.where((size < float("inf")) & definite, 0.0, float("nan"))
    growth = tl.sqrt(1 + ridge)
    half = exponent >> 1
    root_scale = tl.where(size > 0, growth * power_of_two(half), 0.0)
    inverse_scale = tl.where(size > 0, power_of_two(-half) / growth, 0.0)
    return X, eye, root_scale, inverse_scale, nan_mask


@triton.jit
def restore(out, X, factor, nan_mask, n, N: tl.constexpr):
    """Write the symmetric part times a factor, or NaN."""
    row, column, inside, _ = matrix_lanes(n, N)
    place = tl.program_id(0).to(tl.int64) * n * n + row * n + column
    tl.store(out + place, factor * symmetric(X) + nan_mask, inside)
