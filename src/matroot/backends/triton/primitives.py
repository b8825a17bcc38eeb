"""Products of float32 matrices from half-precision ones, and bounds from the moments of a spectrum.

Three float16 products (FP16X3) are as exact as float32 except that tensor cores truncate sums. FP16 is half precision.
Import only where Triton is.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

# (12 eps/(63/256))^(2/5): the largest sum of squares of I - M for which Taylor's step is the last.
TAYLOR_THRESHOLD = tl.constexpr(0.0081)
FP16X3 = tl.constexpr("fp16x3")
FP16X3_TRANSPOSED = tl.constexpr("fp16x3 by the transpose")
FP16 = tl.constexpr("fp16")
UNIT = tl.constexpr(16.0)  # what stands for one in factors of FP16X3 products, for ``split_fp16`` to keep their digits
LARGEST = tl.constexpr(3.4028234663852886e38)  # of float32
FOURTH = tl.constexpr(UNIT.value**-4)


@triton.jit
def split_fp16(x):
    """float16 high and low with x = high + low to 22 bits; for |x| below 65504, and no finer than 2^-25."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def fp16x3_matmul(a, b):
    a0, a1 = split_fp16(a)
    b0, b1 = split_fp16(b)
    return tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))


@triton.jit
def matmul(a, b, PRECISION: tl.constexpr):
    """a b, but if FP16X3_TRANSPOSED or FP16 a times the transpose of b, for a symmetric b.

    The layout of a result is that of a left factor, and of a transposed right one: the transpose saves a conversion.
    It is wrong where b is symmetric only up to rounding and the iteration is stable in one order of factors only.
    """
    if PRECISION == FP16X3:
        found = fp16x3_matmul(a, b)
    elif PRECISION == FP16X3_TRANSPOSED:
        found = fp16x3_matmul(a, tl.trans(b))
    elif PRECISION == FP16:
        found = tl.dot(a.to(tl.float16), tl.trans(b).to(tl.float16))
    else:
        found = tl.dot(a, b, input_precision=PRECISION)
    return found


@triton.jit
def total(x):
    """The sum of all entries: threads add theirs before they exchange sums, as they would for each row otherwise.

    Threads may differ by a rounding if x is a product of which each holds one entry; see ``sum_of_squares``.
    """
    return tl.sum(x)


@triton.jit
def sum_of_squares(x):
    """The same number in all threads, for any layout of x.

    Threads that hold one entry each exchange their squares. Without the minimum the compiler contracts a
    thread's own square with the addition, so that it is exact and the other thread's is rounded: either has another
    sum, and what depends on it is no longer one number but one for each entry of a matrix.
    """
    return total(tl.minimum(x * x, LARGEST, propagate_nan=tl.PropagateNan.ALL))


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
def _flatness(m1, m2):
    """Mean squared over mean of squares of eigenvalues, with the mean's sign: one if they are equal."""
    return m1 * tl.abs(m1) / m2


@triton.jit
def suits_fast_path(m1, m2, n):
    """Whether the fast path may be enough for eigenvalues with these means of first and second powers.

    The fewer they are, the less far they spread at the same ratio.
    """
    return _flatness(m1, m2) > tl.where(n <= 32, 0.5, tl.where(n <= 128, 0.55, 0.6))


@triton.jit
def fast_middle_steps(m1, m2):
    """Steps between the first and the last that may be enough for eigenvalues with these means; zero if none are.

    Covariances of k n samples have a flatness of k/(k + 1). One step is enough from k = 1.7 on, condition numbers up to
    about 50, and two from k = 1.1 on.
    """
    flatness = _flatness(m1, m2)
    return tl.where(flatness > 0.63, 1, tl.where(flatness > 0.45, 2, 0))


@triton.jit
def choose_schedule(m1, m2):
    """The number of the schedule for eigenvalues with these means of first and second powers."""
    flatness = _flatness(m1, m2)
    return tl.where(flatness > 0.6, 0, tl.where(flatness > 0.35, 1, 2))
