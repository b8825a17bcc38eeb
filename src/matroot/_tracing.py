"""What PyTorch is doing while we are called: compiling, transforming, recording.

The one place that looks at interpreter state. Everything here is cheap and is
itself traceable by ``torch.compile``.
"""

import torch
from torch import Tensor


def compiling() -> bool:
    """True while ``torch.compile`` or ``torch.export`` traces the call."""
    return torch.compiler.is_compiling()


def transforming() -> bool:
    """True inside ``torch.func`` (grad, jvp, vmap, ...)."""
    # No public spelling exists; tests/test_tracing.py fails if this one goes away.
    return torch._C._are_functorch_transforms_active()


def recording(*tensors: Tensor) -> bool:
    """True when a derivative of what we compute from ``tensors`` may be asked for."""
    if transforming():
        return True
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return True
    return not compiling() and torch.autograd.forward_ad._current_level >= 0


def concrete(tensor: Tensor) -> bool:
    """True when reading a value costs nothing: plain eager tensors in host memory."""
    if tensor.device.type != "cpu" or compiling() or transforming():
        return False
    # Batched gradients (is_grads_batched, vectorize) still use the vmap that predates torch.func.
    return not torch._C._functorch.is_legacy_batchedtensor(tensor)  # pyright: ignore[reportAttributeAccessIssue]
