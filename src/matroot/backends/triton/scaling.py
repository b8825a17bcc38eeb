"""Scaling by powers of two, which is exact, and matrices as kernels with one program per matrix read them.

Exponents are integers and powers are made from their bits: compiled ``exp2``, ``log2`` and ``sqrt`` flush subnormal
numbers to zero. Subnormal input is read as it is: nothing of it is lost but what the dtype itself has lost. Import only
where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from .primitives import total

SMALL = tl.constexpr(2.0**-100)  # means of smaller moduli may have lost digits to the end of the range
LIFT = tl.constexpr(64)  # even; matrices below SMALL are multiplied by 2^LIFT


@triton.jit
def power_of_two(exponent):
    """2^exponent for an integer in [-126, 127]."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def floor_log2(x):
    """The floor of log2 x as an integer for x > 0: -126 for subnormal numbers and zero, 128 for Inf and NaN."""
    return tl.maximum((x.to(tl.int32, bitcast=True) >> 23) & 255, 1) - 127


@triton.jit
def times_power_of_two(x, exponent):
    """2^exponent x in two exact steps: neither leaves the range unless the result does."""
    exponent = tl.minimum(tl.maximum(exponent, -252), 252)
    half = exponent >> 1
    return x * power_of_two(half) * power_of_two(exponent - half)


@triton.jit
def max_abs(x):
    return tl.max(tl.abs(x))


@triton.jit
def normalized(x) -> tuple:
    """2^-e x and e, such that the largest modulus is between 4 and 8 unless it is next to the end of the range."""
    exponent = tl.maximum(floor_log2(max_abs(x)) - 2, -126)
    return x * power_of_two(-exponent), exponent


@triton.jit
def add_scaled(X, exponent, Y, other) -> tuple:
    """2^exponent X + 2^other Y as a matrix and its exponent, the larger one."""
    largest = tl.maximum(exponent, other)
    X = times_power_of_two(X, exponent - largest)
    return X + times_power_of_two(Y, other - largest), largest


@triton.jit
def matrix_lanes(n, N: tl.constexpr) -> tuple:
    """Rows and columns, which entries belong to the matrix, and the identity."""
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    return row, column, inside, tl.where((row == column) & inside, 1.0, 0.0)


@triton.jit
def identity(n, N: tl.constexpr):
    return matrix_lanes(n, N)[3]


@triton.jit
def load_symmetric(source, n, stride_row, stride_column, FACTOR: tl.constexpr, N: tl.constexpr):
    """FACTOR times the symmetric part of a matrix of any dtype and strides; its offsets may need 64 bits."""
    row, column, inside, _ = matrix_lanes(n, N)
    place = row.to(tl.int64) * stride_row + column.to(tl.int64) * stride_column
    X = tl.load(source + place, inside, 0.0).to(tl.float32) * (0.5 * FACTOR)
    return X + tl.trans(X)


@triton.jit
def load_scaled(source, n, stride_row, stride_column, EVEN: tl.constexpr, N: tl.constexpr) -> tuple:
    """2^-exponent times the symmetric part of a matrix, so that none of its powers leaves the range of float32.

    Returns it, the exponent, an even one if EVEN, and the mean modulus: zero for a zero matrix, NaN or Inf for a matrix
    that holds either. In place of those stands the identity. The largest modulus is at most N^2 times the mean.
    """
    X = load_symmetric(source, n, stride_row, stride_column, 1.0, N)
    size = total(tl.abs(X) * (1.0 / (N * N)))
    lift = 0
    if size < SMALL:
        X = load_symmetric(source, n, stride_row, stride_column, 2.0**LIFT, N)
        size = total(tl.abs(X) * (1.0 / (N * N)))
        lift = LIFT
    exponent = floor_log2(size)
    if EVEN:
        exponent = exponent & -2
    eye = identity(n, N)
    usable = (size > 0) & (size < float("inf"))
    X = tl.where(usable, times_power_of_two(X, -exponent), eye)
    return X, exponent - lift, size
