"""Sums that decide for a whole matrix are the same bits in every thread, which the interpreter cannot show."""

import re

import pytest

from matroot.backends.triton.launch import COMMON_OPTIONS

triton = pytest.importorskip("triton")

SHUFFLE = re.compile(r"shfl\.sync\.bfly\.b32\s+(%r\d+),")
FMA = re.compile(r"fma\.rn\.f32\s+%r\d+, (\S+), (\S+), (%r\d+);")
POWER_OF_TWO = re.compile(r"0f[0-9A-F]{2}[08]00000")


def contracted_sums(ptx: str) -> list[str]:
    """Products added to what another thread sends, in one rounding: the other thread rounds this one's product first.

    Products with powers of two are exact, so that it is the same.
    """
    shuffled = set(SHUFFLE.findall(ptx))
    found = (match for match in FMA.finditer(ptx) if match[3] in shuffled)
    return [match[0] for match in found if not any(POWER_OF_TWO.fullmatch(factor) for factor in match.groups()[:2])]


def compiled_for_any_size(kernel, **constants) -> str:
    """PTX for sizes that 16 does not divide: every thread holds one entry of a row."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"n": "i32", "ridge": "fp32", "max_shift": "fp32"}
    signature = {
        p.name: "constexpr" if p.is_constexpr or p.name == "stride_column"
        else "i32" if p.name.startswith("stride") else types.get(p.name, "*fp32")
        for p in kernel.params
    }  # fmt: skip
    if "stride_column" in signature:
        constants["stride_column"] = 1
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"num_warps": 1} | COMMON_OPTIONS
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


def test_roots():
    """A bound of nearly equal eigenvalues is a difference of sums: what a rounding changes is a root of it."""
    from matroot.backends.triton.on_chip.roots import roots_kernel

    ptx = compiled_for_any_size(roots_kernel, N=16)
    assert SHUFFLE.search(ptx)
    assert contracted_sums(ptx) == []


def test_gradient():
    from matroot.backends.triton.on_chip.gradient import solve_kernel

    ptx = compiled_for_any_size(solve_kernel, N=16, HAS_S=True, HAS_R=True)
    assert SHUFFLE.search(ptx)
    assert contracted_sums(ptx) == []


def test_threads_exchange_sums_of_what_they_hold():
    """Row by row the five exchanges of 32 threads were needed for each of 16 rows, in each of a dozen sums."""
    from matroot.backends.triton.on_chip.gradient import solve_kernel

    ptx = compiled_for_any_size(solve_kernel, N=16, HAS_S=True, HAS_R=True)
    assert len(SHUFFLE.findall(ptx)) < 5 * 16
