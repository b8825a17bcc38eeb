"""Constants in the memory of a device: copied there once, since a CUDA graph cannot copy from the host."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch
from torch import Tensor

from .._tracing import constant_in_traces, is_plain_eager, traced_by_compile


def constant_like(like: Tensor, rows: tuple) -> Tensor:
    """Rows of one length, nested at will, in the dtype and on the device of ``like``.

    The same tensor each time, to be read only, except where ``like`` is not an ordinary one: in a graph that runs
    without us, or has no values.
    """
    if is_plain_eager(like) or traced_by_compile():
        return on_device(like.device, rows, like.dtype)
    return torch.tensor(rows, dtype=like.dtype, device=like.device)


@constant_in_traces  # not the function with a cache itself, into which torch.compile would look
def on_device(device: torch.device, rows: tuple, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same where the device is known, for ordinary tensors; RuntimeError for the first time in a CUDA graph."""
    return _on_device(device, rows, dtype)


@cache
def _on_device(device: torch.device, rows: tuple, dtype: torch.dtype) -> Tensor:
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a CUDA graph cannot copy coefficients from the host; make the same call once before it")
    # In a thread of its own, since the tensor outlives the call: modes for fake tensors, transforms, inference mode
    # and the memory pool of a graph are those of the caller's thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: torch.tensor(rows, dtype=dtype, device="cpu").to(device)).result()
