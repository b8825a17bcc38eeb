"""What is compiled ahead is what calls ask for: Triton's own keys of both, from tensors of a GPU that is not there."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from matroot import Minimax, Smith
from matroot._cli import warmup
from matroot.backends.triton import launch
from matroot.backends.triton.backend import Triton
from matroot.backends.triton.on_chip import launch as on_chip
from matroot.bench.random_search.batches import batch_of

pytest.importorskip("triton")
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from matroot.backends.triton.tiled import fast_launch, occupancy
from matroot.backends.triton.tiled import launch as tiled_launch

from ..backends.triton.unhashed import forget_hashes

pytestmark = pytest.mark.skipif(knobs.runtime.interpret, reason="the interpreter compiles nothing")

DEVICE = torch.device("cuda:0")
H200 = SimpleNamespace(multi_processor_count=132, shared_memory_per_block_optin=227 << 10)
SMALL_GPU = SimpleNamespace(multi_processor_count=20, shared_memory_per_block_optin=99 << 10)
"""One on which n = 128 does not fit on chip, and few programs are resident."""
BATCHES = (1, 2, 8, 10, 16, 20, 26, 27, 64, 256, 1000)
SIZES = (16, 32, 48, 64, 100, 128, 196, 256, 512)
ODD_SIZES = (1, 7, 20, 50, 65, 99, 131)
"""For which neither strides nor results are aligned."""


class Recorder:
    """Stands for Triton's compiler: ``keys`` has kernel, hash of its source and Triton's key of every launch."""

    def __init__(self, properties, programs, monkeypatch):
        self.keys = set()
        target = GPUTarget("cuda", 90, 32)
        # Kernels remember what a device is: this one is no other's.
        active = SimpleNamespace(
            get_current_target=lambda: target, get_current_device=lambda: -1, get_current_stream=lambda device: 0
        )
        monkeypatch.setattr(driver, "_active", active)
        monkeypatch.setattr(knobs.runtime, "jit_cache_hook", self.compile)
        for name, value in {
            "current_device": lambda: 0,
            "get_device_properties": lambda device: properties,
            "current_stream": lambda device: SimpleNamespace(cuda_stream=0),
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(occupancy, "programs_of_compiled", lambda compiled, limits: programs)
        monkeypatch.setattr(occupancy, "_resident", {})
        monkeypatch.setattr(launch, "_compiled", {})
        monkeypatch.setattr(launch.LaunchSequence, "_cache", {})
        for module in (on_chip, tiled_launch, tiled_launch.robust):
            monkeypatch.setattr(module, "coefficients", lambda device, *schedules: torch.empty(120, device=device))
        # Memory of fake tensors is nowhere; without CUDA these methods ask for the device.
        monkeypatch.setattr(FakeTensor, "data_ptr", lambda T: 4096 + T.storage_offset() * T.element_size())
        monkeypatch.setattr(FakeTensor, "__getitem__", indexed)
        monkeypatch.setattr(FakeTensor, "contiguous", lambda T: T.clone(memory_format=torch.contiguous_format))
        monkeypatch.setattr(warmup, "minimax_roots", roots)
        monkeypatch.setattr(warmup, "smith_solve", solve)
        self.clear()

    def compile(self, *, key, fn, **_):
        self.keys.add((fn.name, fn.jit_function.cache_key, key))
        return True  # Triton is not to compile it

    def of(self, call):
        self.keys = set()
        call()
        return self.keys

    @staticmethod
    def clear():
        """What depends on a device and is kept."""
        for cached in (
            on_chip._roots_launch,
            on_chip._solve_launch,
            on_chip.can_take,
            occupancy.max_resident_programs,
        ):
            cached.cache_clear()


def indexed(T, place):
    if isinstance(place, slice):
        return torch.ops.aten.slice.Tensor(T, 0, place.start, place.stop)
    return T.unsqueeze(0) if place is None else T.select(0, place)


def roots(A, ridge):
    return Triton().roots(A, ridge, Minimax(), "both").roots


def solve(S, R, GS, GR, ridge):
    return Triton().solve((S, R), (GS, GR), ridge, Smith(), "both")


@pytest.fixture
def recorder(request, monkeypatch):
    """Of a GPU and a number of programs that are resident on a multiprocessor."""
    with FakeTensorMode():
        yield Recorder(*getattr(request, "param", (H200, 2)), monkeypatch)
    Recorder.clear()


def warmed(recorder, sizes, dtypes=("float32",)):
    tasks = [*warmup.tasks_for(sizes, dtypes, DEVICE)]
    return recorder.of(lambda: [task.launch(DEVICE) for task in tasks])


def layouts(batch, n, dtype=torch.float32):
    """The caller's tensors: contiguous, transposed, parts of others, batch last, one for all, not aligned."""
    numbers = torch.empty((batch + 1) * (n + 16) ** 2, dtype=dtype, device=DEVICE)

    def strided(*strides, offset=0):
        return torch.as_strided(numbers, (batch, n, n), strides, offset)

    return {
        "contiguous": strided(n * n, n, 1),
        "transposed": strided(n * n, 1, n),
        "part": strided((n + 1) ** 2, n + 1, 1),
        "aligned part": strided((n + 16) ** 2, n + 16, 1),
        "batch last": strided(1, n * batch, batch),
        "expanded": strided(0, n, 1),
        "unaligned": strided(n * n, n, 1, offset=1),
        "row of a batch": strided(5, n, 1),
    }


def call(A, ridge, G=None):
    """Both roots and the gradients of each and of both."""
    S, R = roots(A, ridge)
    G = torch.empty_like(S) if G is None else G
    for GS, GR in ((G, None), (None, G), (G, G)):
        solve(S, R, GS, GR, ridge)


@pytest.mark.parametrize(
    ("recorder", "sizes"),
    [((H200, 2), SIZES), ((H200, 1), (128, 512)), ((SMALL_GPU, 1), (100, 256))],
    ids=["two programs", "one program", "small GPU"],
    indirect=["recorder"],
)
def test_calls_launch_what_is_compiled_ahead(recorder, sizes):
    known = warmed(recorder, sizes)
    for n in sizes:
        for batch in BATCHES:
            A, ridge = torch.empty(batch, n, n, device=DEVICE), 1e-3 if batch == 8 else 0.0
            assert recorder.of(lambda A=A, ridge=ridge: call(A, ridge)) <= known, (batch, n)


@pytest.mark.parametrize("n", [*SIZES, *ODD_SIZES])
def test_in_all_layouts(n, recorder):
    known = warmed(recorder, [n])
    for batch in (1, 8):
        for name, A in layouts(batch, n).items():
            assert recorder.of(lambda A=A: call(A, 0.0, A)) <= known, (batch, name)


@pytest.mark.parametrize("n", [16, 50, 128, 196])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types(n, dtype, recorder):
    known = warmed(recorder, [n], (dtype,))
    for batch in (1, 20, 1000):
        for name, A in layouts(batch, n, getattr(torch, dtype)).items():
            assert recorder.of(lambda A=A: roots(A, 0.0)) <= known, (batch, name)


def test_batches_of_the_random_search(recorder, monkeypatch):
    """What its page says to compile ahead is all that it launches; float64 is refined from float32."""
    page = Path(__file__).parents[2] / "docs/benchmarks.md"
    lines = page.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    line = " ".join(next(line for line in lines if line.startswith("matroot warmup")).split())
    sizes, dtypes = line.partition("--n ")[2].split(" --dtype ")
    known = warmed(recorder, [*map(int, sizes.split())], dtypes.split())
    flags = lambda A: torch.zeros(len(A), tiled_launch.FLAGS.value, dtype=torch.int32, device=A.device)  # noqa: E731
    monkeypatch.setattr(tiled_launch, "all_deferred", flags)
    searched = [batch_of(number) for number in range(600)]
    kinds = {(one.n, size, one.dtype, one.gradients) for one in searched for size in (1, one.size)}
    for n, size, dtype, there in kinds:
        dtype = "float32" if dtype == "float64" else dtype
        A = torch.empty(size, n, n, dtype=getattr(torch, dtype), device=DEVICE)

        def call(A=A, there=there):
            S, R = roots(A, 0.0)
            solve(S, R, *(S if wanted else None for wanted in there), 0.0)

        assert recorder.of(call) <= known, (n, size, dtype, there)


def test_in_all_orders(recorder, monkeypatch):
    """A process that begins with other sizes than the one that compiled ahead, and several of those."""
    forget_hashes(monkeypatch)
    known = warmed(recorder, (32, 256))
    for sizes in ((256, 32), (32, 256)):
        forget_hashes(monkeypatch)
        for n in sizes:
            assert recorder.of(lambda n=n: call(torch.empty(8, n, n, device=DEVICE), 0.0)) <= known, sizes
    for task in warmup.tasks_for((32, 256), ("float32",), DEVICE):
        forget_hashes(monkeypatch)
        assert recorder.of(lambda task=task: task.launch(DEVICE)) <= known, task


def test_no_more_is_compiled_than_needed(recorder):
    """Numbers of variants for a size, which a new argument of a kernel would multiply."""
    small, tiled = Counter(name for name, *_ in warmed(recorder, [32])), warmed(recorder, [256])
    assert small == {"roots_kernel": 1, "solve_kernel": 3}
    tiled = Counter(name for name, *_ in tiled)
    assert tiled == {
        "fast_roots_cooperative_kernel": 1,
        "fast_gradient_cooperative_kernel": 3,
        "fast_scale_kernel": 1,
        "fast_roots_phase_kernel": 10,
        "fast_norms_kernel": 3,
        "fast_precondition_kernel": 3,
        "fast_gradient_phase_kernel": 9,
        "robust_roots_kernel": 1,
        "robust_gradient_kernel": 1,
    }


def test_code_is_not_taken_for_other_arguments(recorder, monkeypatch):
    """Later launches look code up by a key of our own, which must imply Triton's."""
    found = {}
    first = launch.launch_cached

    def checked(kernel, grid, arguments, options, key):
        (compiled,) = recorder.of(lambda: first(kernel, grid, arguments, options, key))
        assert found.setdefault((id(kernel), *options.values(), key), compiled) == compiled

    for module in (on_chip, launch, fast_launch, tiled_launch.robust):
        monkeypatch.setattr(module, "launch_cached", checked)
    for n in (1, 32, 50, 100, 196):
        for batch in (1, 64):
            for A in layouts(batch, n).values():
                call(A, 0.0, A)
    assert found
