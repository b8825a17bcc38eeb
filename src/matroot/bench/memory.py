"""Peak memory of a call."""

import weakref

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .problems import Function


class PeakMemory(TorchDispatchMode):
    """Bytes of live storages created inside the block, and their maximum."""

    def __init__(self, *existing: Tensor) -> None:
        """``existing`` tensors do not count."""
        super().__init__()
        self.live = self.peak = 0
        self.seen = {tensor.untyped_storage()._cdata for tensor in existing}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._track(tensor.untyped_storage())
        return result

    def _track(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)

        def release() -> None:
            self.seen.discard(key)
            self.live -= size

        weakref.finalize(storage, release)


def extra_memory(function: Function, A: Tensor, G: Tensor) -> int:
    """Peak bytes of value and gradient beyond the input, the value, what is saved for the backward pass, the gradient.

    Memory that kernels keep from call to call counts.
    """
    X = A.detach().requires_grad_()
    saved: dict[int, int] = {}

    def record(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with PeakMemory(X, G) as meter:
        with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
            value = function(X)
        own = {X.untyped_storage().data_ptr(), value.untyped_storage().data_ptr()}
        kept = value.nbytes + sum(size for pointer, size in saved.items() if pointer not in own)
        forward, meter.peak = meter.peak - kept, meter.live
        (gradient,) = torch.autograd.grad(value, X, G)
        backward = meter.peak - kept - gradient.nbytes
    return max(forward, backward)
