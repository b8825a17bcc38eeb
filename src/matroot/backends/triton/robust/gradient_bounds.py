"""How large the matrices of a gradient can be, and how many products they take."""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import centred_eigenvalue_bound
from ..scaling import floor_log2
from .gradient_input import V_CUBES, V_FOURTHS, V_SQUARES, V_TRACES
from .tiles import sum_slots

MAX_NEWTON = tl.constexpr(6)
MAX_DOUBLINGS = tl.constexpr(7)
TOLERANCE = tl.constexpr(1e-6)


@triton.jit
def newton_error(error, count):
    """The error of K after so many iterations, given the first; a factor centres that of each at zero."""
    for _ in range(count):
        error *= error / (2 - error * error)
    return error


@triton.jit
def newton_count(error):
    """The iterations that K takes: at least one. K is used twice in each term."""
    count = 1
    error = newton_error(error, 1)
    while (error > 0.7 * TOLERANCE) & (count < MAX_NEWTON):
        error = newton_error(error, 1)
        count += 1
    return count


@triton.jit
def doubling_count(p):
    """How often the number of terms is doubled: until the bound of F, squared each time, is negligible."""
    bound = (p - 2) / (p + 2)
    bound *= bound
    count = 0
    while (bound * bound > TOLERANCE) & (count < MAX_DOUBLINGS):
        bound *= bound
        count += 1
    return count


@triton.jit
def norm_exponent_of(slots, count):
    """e such that a matrix with these squares has a norm below 2^e, within reason."""
    return tl.minimum(tl.maximum(floor_log2(tl.sqrt(sum_slots(slots, count))) + 1, -30), 60)


@triton.jit
def largest_eigenvalue(slots, row, n, tiles):
    """Bound of the largest eigenvalue of V - 2 I, from its moments."""
    m1, m2 = sum_slots(slots + V_TRACES * row, tiles) / n, sum_slots(slots + V_SQUARES * row, tiles) / n
    m3, m4 = sum_slots(slots + V_CUBES * row, tiles) / n, sum_slots(slots + V_FOURTHS * row, tiles) / n
    return tl.maximum(1.001 * centred_eigenvalue_bound(m1, m2, m3, m4, n), 0.01)


@triton.jit
def sandwich_exponent(top):
    """e such that (mu R) G (mu R) + G has a norm below 2^(e - 1) if that of G is below one."""
    return floor_log2(1 + (top + 2) * (top + 2)) + 2
