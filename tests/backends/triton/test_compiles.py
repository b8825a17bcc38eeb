"""Every kernel compiles for a GPU, also where there is none: the interpreter accepts more than the compiler does."""

import importlib

import pytest

triton = pytest.importorskip("triton")

MODULES = (
    "on_chip.roots",
    "on_chip.gradient",
    "on_chip.fast",
    "tiled.fast_kernels",
    "tiled.robust_roots",
    "tiled.robust_gradient",
    "paper.kernels",
    "whitening.kernels",
)
NUMBERS = {"ridge", "widest", "wide", "tolerance", "eps", "share"}
POINTERS = {"scratch": "*fp16", "left": "*i32", "P": "*bf16", "Q": "*bf16"}
CONSTANTS = {
    "N": 16, "TILE": 32, "DEPTH": 32, "PRECISION": "bf16x6", "CHEAP": "bf16x3", "CHANNELS": 64, "D": 16, "BLOCK": 64,
    "PARTS": 64, "WIDE": False, "PHASE": None,
}  # fmt: skip
PHASES = {"roots_phase_kernel": 10, "solve_phase_kernel": 8}
OTHERS = {"tiled.robust_roots": {"scratch": "*fp32"}, "tiled.robust_gradient": {"scratch": "*fp32"}}


def kernels():
    """Every kernel with all its switches on, and off if it has any."""
    for name in MODULES:
        module = importlib.import_module(f"matroot.backends.triton.{name}")
        for kernel in vars(module).values():
            if isinstance(kernel, triton.JITFunction) and kernel.__name__.endswith("_kernel"):
                if kernel.__module__ != module.__name__:
                    continue
                switches = {p.name for p in kernel.params if p.is_constexpr} - set(CONSTANTS)
                for on in (True, False) if switches else (True,):
                    for phase in range(PHASES.get(kernel.__name__, 1)):
                        yield pytest.param(kernel, on, phase, id=f"{name}.{kernel.__name__}-{on}-{phase}")


def argument(module, parameter):
    """The type of an argument; pointers have names that are not numbers' or counts'."""
    name = parameter.name
    if parameter.is_constexpr:
        return "constexpr"
    if name in NUMBERS:
        return "fp32"
    counts = (
        "n",
        "batch",
        "groups",
        "members",
        "before",
        "side",
        "positions",
        "chunk",
        "parts",
        "blocks",
        "degree",
        "iterations",
    )
    if name in counts or name.startswith(("stride_", "sqrt_", "inverse_")):
        return "i32"
    return OTHERS.get(module, {}).get(name, POINTERS.get(name, "*fp32"))


@pytest.mark.parametrize(("kernel", "on", "phase"), [*kernels()])
def test_compiles(kernel, on, phase):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = kernel.__module__.removeprefix("matroot.backends.triton.")
    # One of the two roots is always there.
    known = CONSTANTS | {"PHASE": phase}
    constants = {p.name: known.get(p.name, on or p.name in ("HAS_S", "SQRT")) for p in kernel.params if p.is_constexpr}
    signature = {p.name: argument(module, p) for p in kernel.params}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    assert compiled.asm["cubin"]
