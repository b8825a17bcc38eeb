"""The kernels of fp16x3 for small matrices compile for a GPU, also where there is none; and their coefficients."""

import importlib.util
from pathlib import Path

import pytest

from matroot.backends.triton.fp16x3 import on_chip_schedules
from matroot.backends.triton.launch import COMMON_OPTIONS

from .test_compiles import argument, narrow_factors
from .test_threads_agree import SHUFFLE, compiled_for_any_size, contracted_sums

triton = pytest.importorskip("triton")


def kernel_of(name):
    from matroot.backends.triton.fp16x3.on_chip_gradient import solve_kernel
    from matroot.backends.triton.fp16x3.on_chip_roots import roots_kernel

    return {"roots": roots_kernel, "solve": solve_kernel}[name]


@pytest.mark.parametrize(
    ("name", "has_S", "has_R"), [("roots", True, True), ("solve", True, True), ("solve", True, False)]
)
def test_compiles(name, has_S, has_R):
    """And no offset is a product of 32-bit integers, which would wrap in large batches."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernel_of(name)
    known = {"N": 16, "HAS_S": has_S, "HAS_R": has_R}
    constants = {p.name: known[p.name] for p in kernel.params if p.is_constexpr}
    signature = {p.name: argument("fp16x3", p) for p in kernel.params}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1} | COMMON_OPTIONS)
    assert compiled.asm["cubin"]
    assert [*narrow_factors(compiled.asm["ttir"], "x")] == []


@pytest.mark.parametrize("name", ["roots", "solve"])
def test_threads_agree(name):
    """Sums that decide for a whole matrix are the same bits in every thread."""
    kernel = kernel_of(name)
    known = {"N": 16, "HAS_S": True, "HAS_R": True}
    ptx = compiled_for_any_size(kernel, **{p.name: known[p.name] for p in kernel.params if p.is_constexpr})
    assert SHUFFLE.search(ptx)
    assert contracted_sums(ptx) == []


def test_coefficients_are_what_the_script_prints():
    script_file = Path(__file__).parents[3] / "tools/minimax_schedules.py"
    spec = importlib.util.spec_from_file_location("minimax_schedules", script_file)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, (_, q) in script.moderate_steps().items():
        assert tuple(float(c) for c in q) == getattr(on_chip_schedules, name)
