"""How kernels are launched, without a GPU."""

import contextlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import matroot
from matroot.backends.triton import driver, minimax
from matroot.backends.triton.launch import COMMON_OPTIONS, LaunchSequence, launch, launch_cached, launch_compiled
from matroot.backends.triton.layout import as_compiled
from matroot.backends.triton.on_chip import launch as on_chip
from matroot.methods.minimax import kernel_schedules

ROOT = Path(__file__).parents[3]
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


def test_kernels_are_imported_only_when_needed():
    call = "A = torch.eye(40).repeat(20, 1, 1); matroot.sqrtm(A); matroot.sqrtm(A, 'pade')"
    code = f"import sys, matroot, torch; {call}; assert 'matroot.backends.triton.primitives' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_without_a_gpu_there_is_no_kernel():
    assert matroot.choose(torch.empty(2, 8, 8, device="meta")).gradient == matroot.Krylov()


@pytest.mark.parametrize(
    ("spec", "hip", "capability", "failure", "reason"),
    [
        (object(), None, (9, 0), None, None),
        (object(), None, (8, 0), None, None),
        (None, None, (9, 0), "", "Triton is not installed"),
        (object(), "6.4", (9, 4), "", "the GPU is not NVIDIA's"),
        (object(), None, (7, 5), "", "the GPU has compute capability 7.5, kernels need 8.0"),
        (object(), None, (9, 0), "no compiler", "no compiler"),
    ],
)
def test_unavailable_reason(spec, hip, capability, failure, reason, monkeypatch):
    monkeypatch.setattr(driver, "failure", lambda: failure)
    monkeypatch.setattr(minimax, "find_spec", lambda name: spec)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert minimax._unavailable_reason.__wrapped__(torch.device("cuda")) == reason


def test_kernels_are_compiled_once_for_all_batches_that_launch_them(monkeypatch):
    compiled = []
    monkeypatch.setattr(minimax, "_prepared", set())
    monkeypatch.setattr(minimax, "compile_together", contextlib.nullcontext)
    monkeypatch.setattr(minimax, "roots", lambda A, ridge, schedules: compiled.append(A.shape[:2]) or (A, A))
    for batch in (3, 40, 1):  # up to n = 64 a program is a matrix
        minimax.prepare(torch.empty(batch, 32, 32), 0.0, tuple, None)
    monkeypatch.setattr(minimax, "batches_of_all_kernels", lambda n, device: (1, 26, 27))
    for batch in (3, 3, 26, 27, 5000):
        minimax.prepare(torch.empty(batch, 80, 80), 0.0, tuple, None)
    assert compiled == [(3, 32), (3, 80), (26, 80), (27, 80)]


class Recorder:
    """In place of a kernel and of its compiled code: records how it was called."""

    arg_names = ("x", "n", "SIZE", "LAST")

    def __init__(self):
        self.first, self.again = [], []

    def __getitem__(self, grid):
        def call(*arguments, **options):
            assert options.items() >= COMMON_OPTIONS.items()
            own = {name: value for name, value in options.items() if name not in COMMON_OPTIONS}
            self.first.append((grid, arguments, own))
            return self

        return call

    function, packed_metadata = "function", "metadata"

    def run(self, x, y, z, stream, function, metadata, launch_metadata, enter_hook, exit_hook, *arguments):
        assert (function, metadata, launch_metadata, enter_hook, exit_hook) == ("function", "metadata", *3 * [None])
        self.again.append(((x, y, z), arguments, stream))


@needs_triton
def test_launches_compile_once_for_a_layout():
    kernel, x = Recorder(), torch.zeros(4)
    options = {"SIZE": 8, "num_warps": 2, "LAST": True}
    for number in range(2):
        launch(kernel, (3, 1, 1), (x, number), options)
    assert kernel.first == [((3, 1, 1), (x, 0), options)]
    assert kernel.again == [((3, 1, 1), (x, 1, 8, True), None)]
    launch(kernel, (3, 1, 1), (x, 2), options, "more")
    launch(kernel, (3, 1, 1), (x.double(), 2), options)
    assert len(kernel.first) == 3


@needs_triton
def test_later_launches_are_told_the_stream(monkeypatch):
    kernel, x = Recorder(), SimpleNamespace(get_device=lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7 + device, raising=False)
    for _ in range(2):
        launch_cached(kernel, (3, 1, 1), (x, 4), {"SIZE": 8, "LAST": True}, ())
    assert kernel.again == [((3, 1, 1), (x, 4, 8, True), 7)]


def empty_kernel(x, n, SIZE):
    return


@needs_triton
@pytest.mark.parametrize("hooked", [False, True])
def test_a_launch_is_that_of_triton(hooked, monkeypatch):
    """Of code that Triton compiled, which it would call itself; hooks of launches are called where there are any."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, CompiledKernel

    source = ASTSource(triton.JITFunction(empty_kernel), {"x": "*fp32", "n": "i32", "SIZE": "constexpr"}, {(2,): 8})
    compiled = triton.compile(source, GPUTarget("cuda", 90, 32), COMMON_OPTIONS)
    runs, hook_calls = [], []
    monkeypatch.setattr(CompiledKernel, "_init_handles", lambda self: None)
    compiled._run, compiled.function = lambda *arguments: runs.append(arguments), 5
    if hooked:
        monkeypatch.setattr(triton.knobs.runtime.launch_enter_hook, "calls", [hook_calls.append])
    arguments = (torch.zeros(4), 4, 8)
    launch_compiled(compiled, (3, 1, 1), 7, arguments)
    compiled[3, 1, 1](*arguments, stream=7)
    mine, its = runs
    assert mine[:6] == its[:6] == (3, 1, 1, 7, 5, compiled.packed_metadata)
    assert mine[9:] == its[9:] == arguments
    assert [argument is None for argument in mine[6:9]] == 3 * [not hooked]


@needs_triton
def test_small_matrices_compile_once_for_all_layouts(monkeypatch):
    kernel, option = Recorder(), {"SIZE": 8}
    monkeypatch.setattr(on_chip, "_roots_launch", lambda *of: (kernel, None, option))
    monkeypatch.setattr(on_chip, "_solve_launch", lambda *of: (kernel, option))
    whole = torch.zeros(2 * 16 + 1)
    A, unaligned = whole[:-1].view(2, 4, 4), whole[1:].view(2, 4, 4)
    for like in (A, unaligned, A.mT, A[:1].expand(2, -1, -1), A.permute(1, 2, 0).contiguous().permute(2, 0, 1)):
        minimax.roots(like, 0.0, tuple)
    assert (len(kernel.first), len(kernel.again)) == (1, 4)
    for like in (A.half(), A[:, :3, :3]):
        minimax.roots(like, 0.0, tuple)
    assert (len(kernel.first), len(kernel.again)) == (3, 4)
    for given in ((A, A, A, None), (A, A, None, A), (A, A, A, A)):
        minimax.solve(*given, 0.0)
    assert (len(kernel.first), len(kernel.again)) == (6, 4)
    for given in ((unaligned, A, A, None), (A, unaligned, A, None), (A, A, None, A.mT)):
        minimax.solve(*given, 0.0)
    assert (len(kernel.first), len(kernel.again)) == (6, 7)
    for _, arguments, _ in kernel.first + kernel.again:
        assert all(T.data_ptr() % 16 == 0 for T in arguments if isinstance(T, torch.Tensor))


@pytest.mark.parametrize("batch", [1, 3])
def test_layouts_are_those_of_contiguous_matrices(batch):
    """In place where only the numbers differ, otherwise copied; of the same symmetric parts."""
    n = 32
    whole = torch.randn(batch * (n + 16), n + 16)
    padded = whole.view(batch, n + 16, n + 16)[:, :n, :n]
    dense = padded.contiguous()
    for A, in_place in (
        (dense, True),
        (dense.mT, True),
        (padded, True),
        (dense[:1].expand(batch, -1, -1), True),
        (whole.flatten()[1 : 1 + batch * n * n].view(batch, n, n), False),
        (dense.permute(1, 2, 0).contiguous().permute(2, 0, 1), batch == 1),
        (dense[:, ::2, ::2], False),
    ):
        found = as_compiled(A)
        assert (found.data_ptr() == A.data_ptr()) == in_place
        assert found.data_ptr() % 16 == 0
        assert found.stride(2) == 1
        assert found.stride(1) % 16 == found.stride(0) % 16 == 0
        assert torch.equal(found + found.mT, A + A.mT)


@needs_triton
def test_a_sequence_of_launches_compiles_once_for_a_layout():
    kernel, device = Recorder(), torch.device("cpu")
    for number in range(2):
        LaunchSequence({"SIZE": 8, "OTHER": 1}, device, (4,)).launch(kernel, 3, (torch.zeros(4), number), LAST=True)
    warps = {"num_warps": 4, "num_stages": 3}
    assert [call[2] for call in kernel.first] == [{"SIZE": 8, "LAST": True} | warps]
    assert [(grid, arguments[1:], stream) for grid, arguments, stream in kernel.again] == [
        ((3, 1, 1), (1, 8, True), None)
    ]
    for options, key, last in (({"SIZE": 16}, 4, True), ({"SIZE": 8}, 5, True), ({"SIZE": 8}, 4, False)):
        compiled = len(kernel.first)
        LaunchSequence(options, device, (key,)).launch(kernel, 3, (torch.zeros(4), 0), LAST=last)
        assert len(kernel.first) == compiled + 1
    assert len(kernel.again) == 1


@needs_triton
@pytest.mark.parametrize(
    ("n", "programs", "launches"), [(100, 0, 4), (100, 12, 8), (200, 0, 16 + 16 + 2 * 18), (200, 12, 8)]
)
def test_later_launches_take_what_the_first_ones_did(n, programs, launches, monkeypatch):
    """Past the dispatcher arguments are positional; nothing but a GPU would notice one that is missing or misplaced."""
    from matroot.backends.triton.on_chip import gradient, roots
    from matroot.backends.triton.on_chip import launch as on_chip
    from matroot.backends.triton.robust import launch as robust_launch
    from matroot.backends.triton.tiled import fast_kernels, fast_launch

    for name in ("_roots_launch", "_solve_launch"):
        # Without what is kept of them, before and after.
        monkeypatch.setattr(on_chip, name, getattr(on_chip, name).__wrapped__)
    calls = []

    class Kernel:
        def __init__(self, name, arg_names):
            self.name, self.arg_names = name, arg_names

        def __getitem__(self, grid):
            def call(*arguments, **options):
                named = dict(zip(self.arg_names, arguments, strict=False))
                named |= {name: value for name, value in options.items() if name in self.arg_names}
                assert len(arguments) + len(named.keys() & options.keys()) == len(self.arg_names) == len(named)
                seen = {name: getattr(value, "shape", value) for name, value in named.items()}
                calls.append((self.name, grid, seen))
                return self

            return call

        function = packed_metadata = None

        def run(self, x, y, z, stream, function, metadata, launch_metadata, enter_hook, exit_hook, *arguments):
            self[x, y, z](*arguments)

    monkeypatch.setattr(fast_launch, "programs_per_matrix", lambda *_: programs)
    for module in (gradient, roots, fast_kernels, robust_launch):
        for name, kernel in [*vars(module).items()]:
            if name.endswith("_kernel"):
                monkeypatch.setattr(module, name, Kernel(name, kernel.arg_names))
    A = torch.zeros(3, n, n)
    rounds = []
    for _ in range(2):
        calls.clear()
        S, R = minimax.roots(A, 0.1, kernel_schedules)
        for GS, GR in ((A, None), (None, A), (A, A)):
            minimax.solve(S, R, GS, GR, 0.1)
        rounds.append([*calls])
    assert rounds[0] == rounds[1]
    assert len(rounds[0]) == launches
