"""Launching kernels with little ado."""

import contextlib
from functools import cache
from typing import Any

import torch
from torch import Tensor

_compiled: dict[tuple, Any] = {}


def launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], *more: object) -> None:
    """Launch a kernel, past the dispatcher of Triton where the same compiled code will do.

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
    if compiled is None:
        with torch.cuda.device(tensors[0].device) if tensors[0].is_cuda else contextlib.nullcontext():
            _compiled[key] = kernel[grid](*arguments, **options)
        return
    constants = [options[name] for name in kernel.arg_names[len(arguments) :]]
    with torch.cuda.device(tensors[0].device):
        compiled[grid](*arguments, *constants)


@cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def on_device(device: torch.device, rows: tuple[tuple, ...]) -> Tensor:
    """Coefficients where kernels can read them."""
    return torch.tensor(rows, dtype=torch.float32, device="cpu").to(device, non_blocking=True)
