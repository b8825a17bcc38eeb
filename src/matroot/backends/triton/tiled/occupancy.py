"""How many programs of a kernel are resident on a GPU at once.

The programs of a cooperative launch wait for each other: more than are resident would be an error, fewer are slower.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import torch

from ..compile_log import log_slow_compilation
from ..compile_together import begin_to_compile, compiling_only
from ..launch import COMMON_OPTIONS
from ..source_hash import hash_callees_first

WARPS = 4
"""Per program, where nothing else is said."""
MAX_WARPS_PER_MULTIPROCESSOR = 8
"""With these each thread can have the 255 registers that a thread can address."""

_RESERVED_SHARED_MEMORY = 1024
"""Bytes that the system takes per program, from compute capability 8.0 on."""
_SHARED_MEMORY_UNIT = 128
_REGISTER_UNIT = 256
"""Registers are allocated to warps in this unit."""
_PARTITIONS = 4
"""Of a multiprocessor: each has a fourth of the registers and takes whole warps."""

_resident: dict[tuple, int] = {}


class MultiprocessorLimits(Protocol):
    """The part of ``torch.cuda.get_device_properties`` that matters here."""

    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int
    max_threads_per_multi_processor: int
    warp_size: int


def programs_per_multiprocessor(shared_memory: int, registers: int, warps: int, limits: MultiprocessorLimits) -> int:
    """Programs resident on a multiprocessor, zero if not even one is.

    ``shared_memory`` is in bytes per program, ``registers`` are per thread.
    """
    if shared_memory > limits.shared_memory_per_block_optin:
        return 0
    shared_memory = _round_up(shared_memory, _SHARED_MEMORY_UNIT) + _RESERVED_SHARED_MEMORY
    registers = _round_up(max(registers, 1) * limits.warp_size, _REGISTER_UNIT)
    register_warps = limits.regs_per_multiprocessor // _PARTITIONS // registers * _PARTITIONS
    thread_warps = limits.max_threads_per_multi_processor // limits.warp_size
    max_warps = min(MAX_WARPS_PER_MULTIPROCESSOR, register_warps, thread_warps)
    return min(max_warps // warps, limits.shared_memory_per_multiprocessor // shared_memory)


@cache
def max_resident_programs(device: torch.device) -> int:
    """An upper bound for any kernel with WARPS warps: one where there is no GPU."""
    if device.type != "cuda":
        return 1
    return MAX_WARPS_PER_MULTIPROCESSOR // WARPS * torch.cuda.get_device_properties(device).multi_processor_count


def resident_programs(
    kernel: Any, arguments: Callable[[], tuple], options: dict[str, Any], device: torch.device, key: tuple
) -> int:
    """Programs of a kernel that are resident on a device at once, as its compiled code says.

    ``arguments`` must not differ from those of the launch in what the kernel is compiled for; ``key`` implies that, as
    for launches. They are made and the kernel is compiled at the first call for a key; where kernels are only compiled,
    an upper bound is returned.
    """
    if device.type != "cuda":
        return 1
    key = (id(kernel), device, *options.values(), key)
    if key not in _resident:
        if compiling_only():
            begin_to_compile(kernel, arguments(), options | COMMON_OPTIONS)
            return max_resident_programs(device)  # not known yet
        hash_callees_first(kernel)
        with log_slow_compilation([kernel]):
            compiled = kernel.warmup(*arguments(), grid=(1, 1, 1), **options, **COMMON_OPTIONS)
        limits = torch.cuda.get_device_properties(device)
        _resident[key] = programs_of_compiled(compiled, limits) * limits.multi_processor_count
    return _resident[key]


def programs_of_compiled(compiled: Any, limits: MultiprocessorLimits) -> int:
    """Programs per multiprocessor of compiled code."""
    shared_memory, warps = compiled.metadata.shared, compiled.metadata.num_warps
    if shared_memory > limits.shared_memory_per_block_optin:
        return 0  # loading it would raise
    compiled[1, 1, 1]  # loads the code without launching it; only then the registers are known
    return programs_per_multiprocessor(shared_memory, compiled.n_regs, warps, limits)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
