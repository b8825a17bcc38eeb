"""What ``_inputs`` does to a matrix before and after a method, inside a kernel with one program per matrix."""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import matmul, total


@triton.jit
def two_to(exponent):
    """2^exponent for an integer in [-126, 127], exactly."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def floor_log2(x):
    """The floor of log2 x for x > 0, and -126 for what is smaller than float32's normal numbers."""
    return tl.maximum((x.to(tl.int32, bitcast=True) >> 23) & 255, 1) - 127


@triton.jit
def frobenius(X):
    return tl.sqrt(total(X * X))


@triton.jit
def symmetric(X):
    return 0.5 * X + 0.5 * tl.trans(X)


@triton.jit
def loaded(source, matrix, row, column, inside, stride_batch, stride_row, stride_column):
    """The symmetric part of a matrix of any dtype and strides."""
    place = source + matrix * stride_batch + row * stride_row + column * stride_column
    return symmetric(tl.load(place, inside, 0.0).to(tl.float32))


@triton.jit
def swept(X, n, N: tl.constexpr):
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
def surely_definite(X, eye, bound, n, PRECISION: tl.constexpr):
    """Whether a few products show it, a fraction of the time of an elimination; false says nothing.

    Eigenvalues of X that are not positive lie beyond 1 in I - 1.9 X/bound, all others within, and powers tell.
    """
    T = eye - (1.9 / bound) * X
    size = total(T * T)
    step = 0
    while (size > 0.8) & (size < 1.01 * n) & (step < 8):
        T = matmul(T, T, PRECISION)
        size = total(T * T)
        step += 1
    return size <= 0.8


@triton.jit
def cleaned(A, n, stride_batch, stride_row, stride_column, ridge, wide, N: tl.constexpr, PRECISION: tl.constexpr):
    """What ``_inputs.clean`` makes of this program's matrix: it, the identity, the two scales, the poison.

    ``wide`` is eps of a half precision input dtype, zero for float32.
    """
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    matrix = tl.program_id(0).to(tl.int64)
    X = loaded(A, matrix, row, column, inside, stride_batch, stride_row, stride_column)
    eye = tl.where((row == column) & inside, 1.0, 0.0)
    size = tl.max(tl.max(tl.abs(X), 1), 0)
    strange = tl.max(tl.max(tl.where(tl.abs(X) < float("inf"), 0, 1), 1), 0)  # NaN compares false
    usable = (size > 0) & (strange == 0)

    # A power of four, so that dividing by it and multiplying by its root are exact.
    half = floor_log2(size) >> 1
    X = tl.where(usable, X * two_to(-half) * two_to(-half), eye)
    X = (X + eye * (ridge / n) * total(X * eye)) / (1 + ridge)

    mean = total(X * eye) / n
    variance = tl.maximum(total(X * X) / n - mean * mean, 0.0)
    bound = tl.abs(mean) + tl.sqrt((n - 1) * variance)
    strict = 4 * 1.1920929e-7 * n
    definite = surely_definite(X, eye, bound, n, PRECISION)
    if not definite:
        _, definite = swept(X + strict * bound * eye, n, N)
    if (not definite) & (wide > 0):
        X += (wide + strict) * bound * eye
        _, definite = swept(X, n, N)
    X = tl.where(definite, X, eye)

    poison = tl.where((strange == 0) & definite, 0.0, float("nan"))
    grown = tl.sqrt(1 + ridge)
    root_scale = tl.where(size > 0, grown * two_to(half), 0.0)
    inverse_scale = tl.where(size > 0, two_to(-half) / grown, 0.0)
    return X, eye, root_scale, inverse_scale, poison


@triton.jit
def restore(out, X, factor, poison, n, N: tl.constexpr):
    """Write the symmetric part times a factor, or NaN."""
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    place = tl.program_id(0).to(tl.int64) * n * n + row * n + column
    tl.store(out + place, factor * symmetric(X) + poison, (row < n) & (column < n))
