"""Whitening by fused kernels inside ``torch.compile``: as in ``_whitening_fused``, with operators that it can trace.

For the default root and one process. Everything else is traced as torch operations.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .._autograd.ops import minimax_roots, smith_solve
from .._dispatch import choose
from .._tracing import autocast_disabled, traced_by_compile
from ..backends.triton.whitening import launch as kernels
from ..gradients import Smith
from ..methods import Minimax
from ._batch_statistics import active_group
from ._whitening import WhiteningSpec, update_running_stats
from ._whitening_ops import whitening_gradients, whitening_statistics, whitening_transform, whitening_vjp


def is_supported(x: Tensor, spec: WhiteningSpec) -> bool:
    """Whether the operators can whiten features (N, C, *) as ``spec`` says."""
    if not traced_by_compile() or active_group(spec.process_group) is not None or not kernels.fits(x, spec.groups):
        return False
    size = x.shape[1] // spec.groups
    plan = choose(x.new_empty(spec.groups, size, size, dtype=torch.float32), spec.method, spec.gradient)
    return plan.backend in ("triton", "compiled") and plan.method == Minimax() and plan.gradient == Smith()


def forward_traced(x: Tensor, weight: Tensor | None, bias: Tensor | None, spec: WhiteningSpec) -> Tensor:
    """weight * W (x - mean) + bias for supported features (N, C, *), with the statistics of their batch."""
    with autocast_disabled(x):
        y, mean, covariance, W = _TracedWhitening.apply(x, weight, bias, spec.groups, spec.eps)
        update_running_stats(spec.running, x.numel() // x.shape[1], mean, covariance, W)
        return y


class _TracedWhitening(Function):
    """(x, weight, bias) -> y, and the mean, covariance and inverse root of the batch"""

    @staticmethod
    def forward(ctx: Any, x, weight, bias, groups, eps):
        mean, covariance, regularised = whitening_statistics(x, groups, eps)
        S, W = minimax_roots(regularised, 0.0)
        ctx.save_for_backward(x, weight, bias, mean, S, W)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(mean, covariance, W)
        return whitening_transform(x, mean, W, weight, bias), mean, covariance, W

    @staticmethod
    def backward(ctx: Any, g, *_):
        x, weight, bias, mean, S, W = ctx.saved_tensors
        grad_bias, grad_weight, grad_W = whitening_gradients(g, x, mean, W, weight)
        H = smith_solve(S, W, None, grad_W, 0.0)
        grad_x = whitening_vjp(g, x, mean, W, weight, H, grad_bias)
        grad_weight = None if weight is None else grad_weight.to(weight.dtype)
        return grad_x, grad_weight, None if bias is None else grad_bias.to(bias.dtype), None, None
