"""Every kernel compiles for a GPU, also where there is none: the interpreter accepts more than the compiler does."""

import importlib
import re

import pytest
import torch

from matroot.backends.triton.launch import COMMON_OPTIONS

triton = pytest.importorskip("triton")

MODULES = (
    "on_chip.roots",
    "on_chip.gradient",
    "tiled.fast_kernels",
    "robust.roots",
    "robust.gradient",
    "paper.kernels",
    "whitening.kernels",
)
NUMBERS = {"ridge", "max_shift", "strict_tolerance", "wide_tolerance", "tolerance", "eps", "share"}
COUNTS = {
    "n", "batch", "groups", "programs", "programs_per_matrix", "repetition", "side", "depth", "positions", "chunk",
    "parts", "blocks", "degree", "iterations", "has_S", "has_R",
}  # fmt: skip
STRIDES = ("stride_", "sqrt_", "inverse_")
POINTERS = {"scratch": "*fp16", "deferred": "*i32", "P": "*bf16", "Q": "*bf16"}
CONSTANTS = {
    "N": 16, "TILE": 16, "DEPTH": 16, "PRECISION": "bf16x6", "CHANNELS": 64, "SIZE": 12,
    "D": 16, "BLOCK": 64, "PARTS": 64, "FLOAT32_FACTORS": False, "PHASE": None,
}  # fmt: skip
# Every phase is in the kernel of all phases. Alone: those for which the kernel of one phase has code of its own.
PHASES = {"fast_roots_phase_kernel": (0, 1, 8), "fast_gradient_phase_kernel": (2, 3, 4)}
# A switch that is off has code of its own in these; the code of one cotangent alone is common to several kernels.
ALSO_OFF = {
    "solve_kernel", "fast_norms_kernel", "fast_precondition_kernel", "newton_schulz_kernel",
    "lyapunov_kernel", "moments_kernel", "affine_kernel",
}  # fmt: skip


def kernels():
    """Every kernel with all switches on, and some with all off."""
    for name in MODULES:
        module = importlib.import_module(f"matroot.backends.triton.{name}")
        for kernel in vars(module).values():
            if not isinstance(kernel, triton.JITFunction) or not kernel.__name__.endswith("_kernel"):
                continue
            if kernel.__module__ != module.__name__:
                continue
            for on in (True, False) if kernel.__name__ in ALSO_OFF else (True,):
                for phase in PHASES.get(kernel.__name__, (0,)):
                    yield pytest.param(kernel, on, phase, id=f"{name}.{kernel.__name__}-{on}-{phase}")


def argument(parameter):
    """The type of an argument; pointers have names that are not numbers' or counts'."""
    name = parameter.name
    if parameter.is_constexpr:
        return "constexpr"
    if name in NUMBERS:
        return "fp32"
    if name in COUNTS or name.startswith(STRIDES):
        return "i32"
    return POINTERS.get(name, "*fp32")


def compile_kernel(kernel, on, phase):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # One of the two roots is always there.
    known = CONSTANTS | {"PHASE": phase}
    constants = {p.name: known.get(p.name, on or p.name in ("HAS_S", "SQRT")) for p in kernel.params if p.is_constexpr}
    signature = {p.name: argument(p) for p in kernel.params}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4} | COMMON_OPTIONS)


@pytest.mark.parametrize(("kernel", "on", "phase"), [*kernels()])
def test_compiles(kernel, on, phase):
    compiled = compile_kernel(kernel, on, phase)
    assert compiled.asm["cubin"]
    if not kernel.__module__.startswith(("matroot.backends.triton.tiled", "matroot.backends.triton.robust")):
        axis = "y" if ".whitening." in kernel.__module__ else "x"
        assert [*narrow_factors(compiled.asm["ttir"], axis)] == []


def narrow_factors(ttir: str, axis: str):
    """Where strides or the number of a matrix (or group) are used before they are widened to 64 bits.

    A product of two 32-bit integers has 32 bits: it wraps above 2^31 elements, for example where the batch is the
    innermost dimension of a large tensor and the stride of a row is long.
    """
    numbers = re.findall(rf"(%\w+) = tt\.get_program_id {axis} ", ttir)
    strides = re.findall(rf"(%(?:{'|'.join(STRIDES)})\w+): i32", ttir)
    assert numbers
    for name in {*numbers, *strides}:
        for line in re.findall(rf"^.*{name}\b(?! =|: i32).*$", ttir, re.MULTILINE):
            if "arith.extsi" not in line:
                yield line.strip()


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize("size", [16, 64, 128])
def test_moments_compile_as_they_are_launched(size, capability, monkeypatch):
    """In as many stages as the GPU takes."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from matroot.backends.triton.whitening import kernels, launch

    monkeypatch.setattr(launch, "multiprocessors", lambda device: 100)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: divmod(capability, 10))
    plan = launch._plan.__wrapped__(10000, size, 1, torch.device("cuda"))
    kernel, constants = kernels.moments_kernel, plan.pass_options | {"OWN_MEAN": True}
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")} | COMMON_OPTIONS
    signature = {p.name: argument(p) for p in kernel.params}
    aligned = {(place,): [["tt.divisibility", 16]] for place in range(5)}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
    assert triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["cubin"]
