"""Programs of a cooperative launch that are resident at once, without a GPU."""

from types import SimpleNamespace

import pytest
import torch

from matroot.backends.triton.launch import COMMON_OPTIONS
from matroot.backends.triton.tiled import occupancy

KILOBYTE = 1024
MAX_REGISTERS = 255


def limits(shared_kilobytes, multiprocessors=1, registers=65536, threads=2048):
    """As ``torch.cuda.get_device_properties`` has them; a program can have all shared memory but what is reserved."""
    return SimpleNamespace(
        shared_memory_per_multiprocessor=shared_kilobytes * KILOBYTE,
        shared_memory_per_block_optin=(shared_kilobytes - 1) * KILOBYTE,
        regs_per_multiprocessor=registers,
        max_threads_per_multi_processor=threads,
        warp_size=32,
        multi_processor_count=multiprocessors,
    )


H200, A100, RTX4090 = limits(228, 132), limits(164, 108), limits(100, 128, threads=1536)


@pytest.mark.parametrize(
    ("shared", "registers", "warps", "device", "programs"),
    [
        (0, 32, 4, H200, 2),  # no more than 8 warps
        (0, 32, 2, H200, 4),
        (0, 32, 8, H200, 1),
        (72 * KILOBYTE, MAX_REGISTERS, 4, H200, 2),
        (113 * KILOBYTE, MAX_REGISTERS, 4, H200, 2),  # each takes one more, which is reserved
        (113 * KILOBYTE + 1, MAX_REGISTERS, 4, H200, 1),
        (72 * KILOBYTE, MAX_REGISTERS, 4, A100, 2),
        (96 * KILOBYTE, MAX_REGISTERS, 4, A100, 1),
        (98 * KILOBYTE, MAX_REGISTERS, 4, RTX4090, 1),
        (100 * KILOBYTE, MAX_REGISTERS, 4, RTX4090, 0),
        (0, MAX_REGISTERS, 4, limits(228, registers=32768), 1),
        (0, MAX_REGISTERS, 4, limits(228, registers=16384), 0),
        (0, 65, 4, limits(228, registers=16384), 1),  # each partition takes one warp
        (0, 32, 4, limits(228, threads=128), 1),
    ],
)
def test_programs_per_multiprocessor(shared, registers, warps, device, programs):
    assert occupancy.programs_per_multiprocessor(shared, registers, warps, device) == programs


class Compiled:
    """In place of compiled code, whose registers are known once it is loaded."""

    def __init__(self, shared):
        self.metadata = SimpleNamespace(shared=shared, num_warps=4)
        self.loaded = False

    def __getitem__(self, grid):
        self.loaded, self.n_regs = True, MAX_REGISTERS


@pytest.mark.parametrize(("kilobytes", "programs"), [(60, 2 * 132), (150, 132), (228, 0)])
def test_occupancy_is_read_from_the_compiled_kernel_once(kilobytes, programs, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: H200)
    compiled, made = Compiled(kilobytes * KILOBYTE), []

    class Kernel:
        def warmup(self, *arguments, grid, **options):
            made.append((arguments, options))
            return compiled

    kernel, device, options = Kernel(), torch.device("cuda", 0), {"TILE": 64, "num_warps": 4}
    for _ in range(3):
        assert occupancy.resident_programs(kernel, lambda: (1, 2), options, device, (100,)) == programs
    assert made == [((1, 2), options | COMMON_OPTIONS)]
    assert compiled.loaded == (programs > 0)  # Triton refuses to load what needs too much shared memory
    occupancy.resident_programs(kernel, lambda: (3,), options | {"TILE": 32}, device, (100,))
    occupancy.resident_programs(kernel, lambda: (3,), options, device, (200,))
    assert len(made) == 3


def test_without_a_gpu_there_is_one_program_and_nothing_is_compiled():
    device = torch.device("cpu")
    assert occupancy.max_resident_programs(device) == occupancy.resident_programs(None, tuple, {}, device, ()) == 1


@pytest.mark.parametrize(
    ("batch", "resident", "programs"), [(1, 264, 26), (11, 264, 24), (26, 264, 10), (20, 132, 0), (27, 264, 0)]
)
def test_a_cooperative_launch_has_a_program_for_every_tile_or_is_none(batch, resident, programs, monkeypatch):
    """Between 10 and 26 programs per matrix; where no kernel could have 10, none is compiled to find that out."""
    pytest.importorskip("triton")
    from matroot.backends.triton.tiled import fast_launch

    compiled = []
    monkeypatch.setattr(fast_launch, "max_resident_programs", lambda device: 264)
    monkeypatch.setattr(fast_launch, "resident_programs", lambda *_: compiled.append(True) or resident)
    assert fast_launch.programs_per_matrix(None, torch.empty(batch, 1), 10, 26, tuple, {}, ()) == programs
    assert len(compiled) == (batch < 27)


def test_compiled_code_has_what_is_read_from_it():
    """The names in the versions of Triton that are supported."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from matroot.backends.triton.tiled.fast_kernels import fast_scale_kernel

    assert hasattr(fast_scale_kernel, "warmup")
    signature = {"A": "*fp32", "scratch": "*fp16", "matrix_stats": "*fp32", "deferred": "*i32", "n": "i32"}
    signature |= dict.fromkeys(("stride_batch", "stride_row", "stride_column"), "i32")
    signature |= {"ridge": "fp32", "side": "i32", "TILE": "constexpr"}
    source = ASTSource(fn=fast_scale_kernel, signature=signature, constexprs={"TILE": 32})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2} | COMMON_OPTIONS)
    assert compiled.metadata.num_warps == 2
    assert 0 < compiled.metadata.shared < 64 * KILOBYTE
