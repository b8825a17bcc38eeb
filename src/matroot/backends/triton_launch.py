"""Launching kernels with little ado."""

import contextlib
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

_compiled: dict[tuple, Any] = {}


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
    key = (
        kernel,
        tensors[0].device,
        tuple((tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in tensors),
        tensors[0].shape[-1],
        *options.values(),
        *more,
    )
    compiled = _compiled.get(key)
    with at(tensors[0].device):
        if compiled is None:
            compiled = _compiled[key] = kernel[grid](*arguments, **options)
        else:
            compiled[grid](*arguments, *(options[name] for name in kernel.arg_names[len(arguments) :]))
    return compiled


class Row:
    """Launches one after another for the same tensors of a caller: what their code was compiled for is looked up once.

    ``options`` are those of all kernels that know them, ``given`` the caller's tensors, ``more`` as for ``launch``. All
    other tensors that kernels are launched with must be new.
    """

    _known: ClassVar[dict[tuple, tuple[Any, tuple]]] = {}

    def __init__(self, options: dict[str, Any], given: tuple[Tensor, ...], *more: object) -> None:
        self.options = options
        layouts = tuple((tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in given)
        self.key = (given[0].device, layouts, tuple(options.values()), *more)

    def launch(self, kernel: Any, programs: int, arguments: tuple, **options: Any) -> None:
        key = (kernel, *options.values(), self.key)
        compiled, constants = self._known.get(key, (None, ()))
        if compiled is not None:
            compiled[programs, 1, 1](*arguments, *constants)
            return
        known = self.options | options
        wanted = {name: known[name] for name in kernel.arg_names[len(arguments) :]}
        warps = {"num_warps": 4, "num_stages": 3}
        compiled = launch(kernel, (programs, 1, 1), arguments, wanted | warps, self.key)
        self._known[key] = compiled, tuple(wanted.values())


@cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def on_device(device: torch.device, rows: tuple[tuple, ...]) -> Tensor:
    """Coefficients where kernels can read them."""
    return torch.tensor(rows, dtype=torch.float32, device="cpu").to(device, non_blocking=True)
