"""Constants in the memory of a device: copied there once, since a CUDA graph cannot copy from the host."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch
from torch import Tensor

from .._tracing import is_plain_eager, traced_by_compile


def can_keep(like: Tensor) -> bool:
    """Whether what is computed with ``like`` may use a tensor that is kept for later calls.

    Not in a graph that runs without us, nor where tensors have no values. What a trace of ``torch.compile`` uses must
    come from a function that is ``constant_in_traces``.
    """
    return is_plain_eager(like) or traced_by_compile()


@cache
def on_device(device: torch.device, rows: tuple, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of one length, nested at will, the same tensor each time, to be read only.

    RuntimeError for the first time inside a CUDA graph.
    """
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a CUDA graph cannot copy coefficients from the host; make the same call once before it")
    # In a thread of its own, since the tensor outlives the call: modes for fake tensors, transforms, inference mode
    # and the memory pool of a graph are those of the caller's thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: torch.tensor(rows, dtype=dtype, device="cpu").to(device)).result()
