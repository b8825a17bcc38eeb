"""Launching kernels with little ado."""

import contextlib
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

_compiled: dict[tuple, tuple[Any, tuple]] = {}
"""Code, and the options among its arguments."""


def at(device: torch.device) -> contextlib.AbstractContextManager:
    """Launches inside go to this device."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(device)


def launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], *more: object) -> Any:
    """Launch a kernel, past the dispatcher of Triton where the same compiled code will do; returns that code.

    Code is compiled for dtypes, alignments and divisibility of numbers, so for what is in the key or implied by it:
    ``more`` is what else the numbers depend on.
    """
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    layouts = tuple((tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in tensors)
    key = (layouts, tensors[0].shape[-1], *options.values(), *more)
    return launch_known(kernel, grid, arguments, options, key)


def launch_known(kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], key: tuple) -> Any:
    """The same where ``key`` implies all that code is compiled for but the device, that of the first argument."""
    device = arguments[0].get_device()
    if device >= 0 and device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return launch_known(kernel, grid, arguments, options, key)
    key = (id(kernel), device, key)  # a kernel's own hash is that of its source
    compiled, constants = _compiled.get(key, (None, ()))
    if compiled is not None:
        compiled[grid](*arguments, *constants)
    else:
        compiled = kernel[grid](*arguments, **options)
        _compiled[key] = compiled, tuple(options[name] for name in kernel.arg_names[len(arguments) :])
    return compiled


class Row:
    """Launches one after another for the same tensors of a caller: what their code was compiled for is looked up once.

    ``options`` are those of all kernels that know them, ``key`` implies what else code is compiled for, as for
    ``launch_known``.
    """

    _known: ClassVar[dict[tuple, dict[tuple, tuple[Any, tuple]]]] = {}

    def __init__(self, options: dict[str, Any], device: torch.device, key: tuple) -> None:
        self.options, self.key = options, key
        self.known = self._known.setdefault((device, *options.values(), key), {})
        self.stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None

    def launch(self, kernel: Any, programs: int, arguments: tuple, **options: Any) -> None:
        key = (id(kernel), *options.values())
        compiled, constants = self.known.get(key, (None, ()))
        if compiled is not None:
            compiled[programs, 1, 1](*arguments, *constants, stream=self.stream)
            return
        known = self.options | options
        wanted = {name: known[name] for name in kernel.arg_names[len(arguments) :]}
        warps = {"num_warps": 4, "num_stages": 3}
        compiled = launch_known(kernel, (programs, 1, 1), arguments, wanted | warps, (*wanted.values(), self.key))
        self.known[key] = compiled, tuple(wanted.values())


@cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def resident(device: torch.device, kilobytes: int) -> int:
    """Programs on all multiprocessors at once: 4 warps with all the registers they can have and some shared memory."""
    if device.type != "cuda":
        return 1
    each = torch.cuda.get_device_properties(device)
    return min(2, each.shared_memory_per_multiprocessor // (kilobytes << 10)) * each.multi_processor_count
