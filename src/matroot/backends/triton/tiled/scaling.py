"""Scaling by powers of two, which is exact.

Exponents are integers and powers are made from their bits: compiled ``exp2`` and ``log2`` flush subnormal numbers.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl


@triton.jit
def power_of_two(exponent):
    """2^exponent for an integer in [-126, 127]."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def floor_log2(x):
    """The floor of log2 x as an integer for x >= 0: -126 for zero and subnormal numbers, 128 for Inf and NaN."""
    return tl.maximum((x.to(tl.int32, bitcast=True) >> 23) & 255, 1) - 127


@triton.jit
def times_power_of_two(x, exponent):
    """2^exponent x in two exact steps: neither overflows or underflows unless the result does."""
    exponent = tl.minimum(tl.maximum(exponent, -252), 252)
    half = exponent >> 1
    return x * power_of_two(half) * power_of_two(exponent - half)
