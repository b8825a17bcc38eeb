"""Products of float32 matrices from half-precision ones, and what the moments of a spectrum tell.

Three float16 products (FP16X3) are as exact as float32 but for how tensor cores sum, by truncation, which shows where a
matrix is ill-conditioned: those take INTEGER_SPLIT, six float16 products, of which what counts most are sums of whole
numbers. What only corrects a result may take BF16X3, three bfloat16 products: of their relative error of 4e-6 counts
only what the correction makes of it. FP16 is half precision. Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

STEPS = tl.constexpr(6)  # of the longest schedule in the table
TAYLOR_THRESHOLD = tl.constexpr(
    0.0081
)  # (12 eps/(63/256))^(2/5): what the sum of squares of I - M may be before Taylor's step
FP16X3 = tl.constexpr("fp16x3")
FP16X3_TRANSPOSED = tl.constexpr("fp16x3 by the transpose")
INTEGER_SPLIT = tl.constexpr("fp16x6")
FP16 = tl.constexpr("fp16")
WHOLE = tl.constexpr(12582912.0)  # 1.5 2^23: what is added to it is rounded to a whole number
UNIT = tl.constexpr(16.0)  # what stands for one in factors of FP16X3 products, for ``halves`` to keep their digits
FOURTH = tl.constexpr(UNIT.value**-4)
FAST_STEPS_OFFSET = tl.constexpr(3 * STEPS * 5)  # of the steps for easy matrices, after three schedules


@triton.jit
def split_fp16(x):
    """float16 high and low with x = high + low to 22 bits; for |x| below 65504, and no finer than 2^-25."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _slices(x, AXIS: tl.constexpr):
    """x = unit (first + second/1024 + third/1024^2) with a unit for each row or column; whole numbers up to 512."""
    size = tl.maximum(tl.max(tl.abs(x), AXIS, keep_dims=True), 1e-30)
    bits = size.to(tl.int32, bitcast=True) & 0x7F800000  # the exponent alone: a power of two
    x *= 256 * (0x7F000000 - bits).to(tl.float32, bitcast=True)
    first = (x + WHOLE) - WHOLE
    x = 1024 * (x - first)
    second = (x + WHOLE) - WHOLE
    third = 1024 * (x - second)
    unit = bits.to(tl.float32, bitcast=True) * (1 / 256)
    return unit, first.to(tl.float16), second.to(tl.float16), third.to(tl.float16)


@triton.jit
def integer_split_matmul(a, b):
    """a b, of up to 64 columns and rows: tensor cores truncate sums, but not those of whole numbers up to 2^24."""
    left, a0, a1, a2 = _slices(a, 1)
    right, b0, b1, b2 = _slices(b, 0)
    small = tl.dot(a2, b0, tl.dot(a1, b1, tl.dot(a0, b2)))
    middle = tl.dot(a1, b0, tl.dot(a0, b1))
    return (tl.dot(a0, b0) + (middle + small * (1 / 1024)) * (1 / 1024)) * (left * right)


@triton.jit
def fp16x3_matmul(a, b):
    a0, a1 = split_fp16(a)
    b0, b1 = split_fp16(b)
    return tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))


@triton.jit
def matmul(a, b, PRECISION: tl.constexpr):
    """a b, but if FP16X3_TRANSPOSED or FP16 a times the transpose of b, for a symmetric b.

    What a thread has of a result is what it needs of a left factor, and of the transpose of a right one. But where
    rounding has left b less than symmetric, and the iteration lives by the order of factors, that would not do.
    """
    if PRECISION == FP16X3:
        found = fp16x3_matmul(a, b)
    elif PRECISION == FP16X3_TRANSPOSED:
        found = fp16x3_matmul(a, tl.trans(b))
    elif PRECISION == FP16:
        found = tl.dot(a.to(tl.float16), tl.trans(b).to(tl.float16))
    elif PRECISION == INTEGER_SPLIT:
        found = integer_split_matmul(a, b)
    else:
        found = tl.dot(a, b, input_precision=PRECISION)
    return found


@triton.jit
def total(x):
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def eigenvalue_bound(m2, m4, n):
    """Bound of the largest eigenvalue, from the means of their squares and fourth powers."""
    return tl.sqrt(m2 + tl.sqrt((n - 1) * tl.maximum(m4 - m2 * m2, 0.0)))


@triton.jit
def centred_eigenvalue_bound(m1, m2, m3, m4, n):
    """Bound of the largest eigenvalue from the means of their powers: the better of that about zero and about m1."""
    d2 = tl.maximum(m2 - m1 * m1, 0.0)
    d4 = m4 + m1 * (-4 * m3 + m1 * (6 * m2 - 3 * m1 * m1))
    return tl.minimum(eigenvalue_bound(m2, m4, n), m1 + eigenvalue_bound(d2, d4, n))


@triton.jit
def _share(m1, m2):
    """How near to one another eigenvalues are, from their means of first and second powers: one if they are equal."""
    return m1 * tl.abs(m1) / m2


@triton.jit
def suits_fast_path(m1, m2, n):
    """Whether few steps may be enough for eigenvalues of these means: few of them do not spread as far as many."""
    return _share(m1, m2) > tl.where(n <= 32, 0.5, tl.where(n <= 128, 0.55, 0.6))


@triton.jit
def choose_schedule(m1, m2):
    """The schedule for eigenvalues of these means: 0 for easy matrices, 1 and 2."""
    share = _share(m1, m2)
    return tl.where(share > 0.6, 0, tl.where(share > 0.35, 1, 2))
