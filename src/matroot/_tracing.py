"""What PyTorch is doing during a call: compiling, transforming, recording a graph.

The one place that looks at interpreter state. Everything here is cheap and is
itself traceable by ``torch.compile``.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import Parameter

_dispatch_mode, _PROXY = torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.PROXY
_is_legacy_batched = torch._C._functorch.is_legacy_batchedtensor  # pyright: ignore[reportAttributeAccessIssue]

_T = TypeVar("_T", bound=Callable)

compiling = torch.compiler.is_compiling
"""True while ``torch.compile`` or ``torch.export`` traces the call."""

transforming = torch._C._are_functorch_transforms_active
"""True inside ``torch.func`` (grad, jvp, vmap, ...). No public spelling exists; tests/test_tracing.py fails if this one
goes away."""

jit_tracing = torch._C._get_tracing_state
"""True while ``torch.jit.trace``, or the ONNX exporter built on it, records the call."""


def constant_in_traces(function: _T) -> _T:
    """Mark a function whose result a trace takes as a constant: ``torch.compiler.assume_constant_result``.

    That one imports all of torch._dynamo, 900 modules; what it does is this.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def traced_by_compile() -> bool:
    """True while ``torch.compile`` traces the call, and neither ``torch.func`` nor ``torch.export`` is at work."""
    return compiling() and not transforming() and not exporting()


def exporting() -> bool:
    """True while ``torch.export`` or the ONNX exporter traces the call, whose graphs run without us."""
    return _export_flag() or torch.onnx.is_in_onnx_export()


@constant_in_traces
def _export_flag() -> bool:
    """``torch.compiler.is_exporting()``, which ``torch.compile`` of torch 2.11 takes to be true in every trace."""
    return torch.compiler._is_exporting_flag


@constant_in_traces
def derivative_order() -> int:
    """How many derivatives the active ``torch.func`` transforms take, a constant of a trace."""
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    kinds = (functorch.TransformType.Grad, functorch.TransformType.Jvp)
    return sum(level.key() in kinds for level in functorch.get_interpreter_stack() or ())


def is_batched(tensor: Tensor) -> bool:
    """True for what ``torch.func.vmap`` maps over, inside other transforms too: its values cannot be read."""
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def needs_grad(*tensors: Tensor) -> bool:
    """True when a derivative of what we compute from ``tensors`` may be asked for."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return True
    return transforming() or (not compiling() and forward_mode())


def forward_mode() -> bool:
    """True inside ``torch.autograd.forward_ad.dual_level``."""
    return torch.autograd.forward_ad._current_level >= 0


def is_plain_eager(tensor: Tensor) -> bool:
    """True for ordinary eager tensors, whose memory can be read: not traced, transformed, batched, of a subclass or
    without storage."""
    if compiling() or transforming() or type(tensor) not in (Tensor, Parameter):
        return False
    if jit_tracing() or _dispatch_mode(_PROXY) is not None:
        return False
    # Batched gradients (is_grads_batched, vectorize) still use the vmap that predates torch.func.
    return not (_is_legacy_batched(tensor) or tensor._is_zerotensor())


def is_host_readable(tensor: Tensor) -> bool:
    """True when reading a value costs nothing: plain tensors in host memory."""
    return tensor.device.type == "cpu" and is_plain_eager(tensor)


def autocast_disabled(tensor: Tensor) -> contextlib.AbstractContextManager:
    """Autocast off: it would run float32 products in half precision."""
    if tensor.is_meta:  # has no autocast to switch off
        return contextlib.nullcontext()
    return torch.autocast(tensor.device.type, enabled=False)


@contextlib.contextmanager
def inside_jvp(*saved: Tensor | None) -> Iterator[list]:
    """For the body of a Function's ``jvp``: yields the saved tensors ready for ordinary arithmetic.

    PyTorch switches forward mode off around ``jvp``, so that outer levels of nested forward mode
    would lose their tangents in silence. It is on again here, and the saved tensors have lost
    the tangent of the level being computed, which must not be counted twice.
    """
    with torch.autograd.forward_ad._set_fwd_grad_enabled(True):
        yield [None if tensor is None else _primal(tensor) for tensor in saved]


def _primal(tensor: Tensor) -> Tensor:
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    if functorch.is_batchedtensor(tensor):
        inner = _primal(functorch.get_unwrapped(tensor))
        return functorch._add_batch_dim(inner, functorch.maybe_get_bdim(tensor), functorch.maybe_get_level(tensor))
    return torch.autograd.forward_ad.unpack_dual(tensor, level=0).primal
