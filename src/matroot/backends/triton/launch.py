"""Launching kernels past Triton's dispatcher, which takes longer than small kernels run."""

import contextlib
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from .compile_log import log_slow_compilation
from .compile_together import begin_to_compile, compiling_only
from .source_hash import hash_callees_first

COMMON_OPTIONS = {"enable_fp_fusion": True}
"""Of every kernel: a product and a sum round once, which Triton from 3.10 on does only where it is asked to."""
_compiled: dict[tuple, tuple[Any, tuple]] = {}
"""Compiled code, and those options that are arguments of the kernel."""


def device_context(device: torch.device) -> contextlib.AbstractContextManager:
    """Launches inside go to this device."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(device)


def launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], *more: object) -> Any:
    """Launch a kernel with code compiled before for such arguments, if there is any; returns the code, if it is there.

    Code is compiled for dtypes, alignments, and the divisibility of integers. Dtypes and alignments are looked at here;
    ``more`` is what integers depend on besides the last size of the first tensor.
    """
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    layouts = tuple((tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in tensors)
    key = (layouts, tensors[0].shape[-1], *options.values(), *more)
    return launch_cached(kernel, grid, arguments, options, key)


def launch_cached(
    kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], key: tuple
) -> Any:
    """The same where ``key`` determines what code is compiled for, except the device: that of the first argument."""
    device = arguments[0].get_device()
    if device >= 0 and device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return launch_cached(kernel, grid, arguments, options, key)
    key = (id(kernel), device, key)  # a kernel's own hash is that of its source
    compiled, constants = _compiled.get(key, (None, ()))
    if compiling_only():
        if compiled is None:
            begin_to_compile(kernel, arguments, options | COMMON_OPTIONS)
        return None
    if compiled is not None:
        stream = None if device < 0 else torch._C._cuda_getCurrentRawStream(device)
        launch_compiled(compiled, grid, stream, (*arguments, *constants))
    else:
        hash_callees_first(kernel)
        with log_slow_compilation([kernel]):
            compiled = kernel[grid](*arguments, **options, **COMMON_OPTIONS)
        _compiled[key] = compiled, tuple(options[name] for name in kernel.arg_names[len(arguments) :])
    return compiled


def launch_compiled(compiled: Any, grid: tuple[int, int, int], stream: int | None, arguments: tuple) -> None:
    """``compiled[grid](*arguments, stream=stream)``; without a hook to launches nothing is prepared for one."""
    hooks = _hooks()
    if hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls:
        compiled[grid](*arguments, stream=stream)
    else:
        run = compiled.run  # the first time it loads the function
        run(*grid, stream, compiled.function, compiled.packed_metadata, None, None, None, *arguments)


@cache
def _hooks() -> Any:
    from triton import knobs

    return knobs.runtime


class LaunchSequence:
    """Launches one after another for the same tensors of a caller: the key is looked up once for all of them.

    ``options`` are those of all kernels, of which each takes what it has; ``key`` is that of ``launch_cached``.
    """

    _cache: ClassVar[dict[tuple, dict[tuple, tuple[Any, tuple]]]] = {}

    def __init__(self, options: dict[str, Any], device: torch.device, key: tuple) -> None:
        self.options, self.key = options, key
        self.compiled = self._cache.setdefault((device, *options.values(), key), {})
        self.stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None

    def launch(self, kernel: Any, programs: int, arguments: tuple, **options: Any) -> None:
        key = (id(kernel), *options.values())
        compiled, constants = self.compiled.get(key, (None, ()))
        if compiled is not None and not compiling_only():
            launch_compiled(compiled, (programs, 1, 1), self.stream, (*arguments, *constants))
            return
        every = self.options | options
        constants = {name: every[name] for name in kernel.arg_names[len(arguments) :]}
        warps = {"num_warps": 4, "num_stages": 3}
        compiled = launch_cached(
            kernel, (programs, 1, 1), arguments, constants | warps, (*constants.values(), self.key)
        )
        if compiled is not None:
            self.compiled[key] = compiled, tuple(constants.values())


@cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
