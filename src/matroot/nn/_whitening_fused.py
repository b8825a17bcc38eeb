"""Whitening of features by the statistics of their batch, in fused kernels: on CUDA, half precision, channels last.

With A = weight * W, W = (covariance + eps I)^(-1/2) and y = A (x - mean) + bias, a gradient g with respect to y gives,
summed over all positions of the batch, the gradients with respect to

    the bias    sum g
    A           T = sum g (x - mean)^T; hence weight * T with respect to W, and with respect to the weight
                the row sums of T * W
    the mean    -A^T sum g; it adds nothing through the covariance, for x - mean sums to zero
    x           A^T g + ((H + H^T) (x - mean) - A^T sum g) / count, with H the gradient with respect to the covariance

Where these must be differentiated or batched, the step is computed again in torch operations.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.graph import saved_tensors_hooks

from .._tracing import autocast_disabled, forward_mode, is_plain_eager, needs_grad
from ..backends.triton.whitening import launch as kernels
from ._batch_statistics import active_group, all_reduce_sum
from ._whitening import WhiteningSpec, forward_torch, inverse_root, update_running_stats
from .covariance import add_to_diagonal


def is_supported(x: Tensor, groups: int) -> bool:
    """Whether the kernels can whiten features (N, C, *) in ``groups``."""
    # Kernels read memory as it is.
    return is_plain_eager(x) and not forward_mode() and not x.is_neg() and kernels.fits(x, groups)


def forward_fused(x: Tensor, weight: Tensor | None, bias: Tensor | None, spec: WhiteningSpec) -> Tensor:
    """weight * W (x - mean) + bias for supported features (N, C, *), with the statistics of their batch."""
    with autocast_disabled(x):
        if needs_grad(*(tensor for tensor in (x, weight, bias) if tensor is not None)):
            return _FusedWhitening.apply(x, weight, bias, spec)
        batch = _batch_statistics(x, spec)
        return _normalise(x, weight, bias, spec, batch, inverse_root(batch.regularised, spec).contiguous())


class _Batch(NamedTuple):
    count: Tensor | int
    mean: Tensor
    covariance: Tensor
    regularised: Tensor
    """covariance + eps I"""
    centred_sum: Tensor | None
    """(C,): over several ranks, the sum of x - mean on this one."""


def _batch_statistics(x: Tensor, spec: WhiteningSpec) -> _Batch:
    local_mean, covariance, regularised = kernels.statistics(x, spec.groups, spec.eps)
    positions = x.numel() // x.shape[1]
    group = active_group(spec.process_group)
    if group is None:
        return _Batch(positions, local_mean, covariance, regularised, None)
    # The collectives are those of batch_statistics, which a rank without positions calls.
    totals = all_reduce_sum(torch.cat([positions * local_mean, local_mean.new_full((1,), positions)]), group)
    count, mean = totals[-1], totals[:-1] / totals[-1]
    offset = (local_mean - mean).view(spec.groups, -1, 1)
    covariance = all_reduce_sum(positions * (covariance + offset * offset.mT), group) / count
    return _Batch(count, mean, covariance, add_to_diagonal(covariance, spec.eps), positions * (local_mean - mean))


def _normalise(x, weight, bias, spec: WhiteningSpec, batch: _Batch, W: Tensor) -> Tensor:
    # Inside the Function: a checkpoint recomputes up to the last saved tensor and no further.
    update_running_stats(spec.running, batch.count, batch.mean, batch.covariance, W)
    return kernels.transform(x, batch.mean, W, weight, bias)


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


class _FusedWhitening(Function):
    """(x, weight, bias) -> y"""

    @staticmethod
    def forward(ctx, x, weight, bias, spec):
        batch = _batch_statistics(x, spec)
        ctx.spec, ctx.count = spec, batch.count
        # Hidden from a checkpoint, which would recompute everything for a backward pass inside a backward pass.
        with torch.set_grad_enabled(ctx.needs_input_grad[0]), saved_tensors_hooks(_unchanged, _unchanged):
            ctx.regularised = batch.regularised.requires_grad_(ctx.needs_input_grad[0])
            ctx.root = inverse_root(ctx.regularised, spec).contiguous()
        ctx.save_for_backward(x, weight, bias, batch.mean, batch.centred_sum)
        ctx.set_materialize_grads(False)
        return _normalise(x, weight, bias, spec, batch, ctx.root.detach())

    @staticmethod
    def backward(ctx, g, *_):
        x, weight, bias, mean, centred_sum = ctx.saved_tensors
        if g is None:
            return None, None, None, None
        if torch.is_grad_enabled() or not is_plain_eager(g):
            return *_backward_torch(ctx, g, x, weight, bias), None
        if not kernels.channels_last(g):
            g = g.movedim(1, -1).contiguous().movedim(-1, 1)
        g, W = g.resolve_neg(), ctx.root.detach()
        grad_bias, grad_weight, grad_W = kernels.gradients(g, x, mean, W, weight)
        grad_x = None
        if ctx.needs_input_grad[0]:
            # The graph is retained for another backward pass: these matrices are small.
            (H,) = torch.autograd.grad(ctx.root, ctx.regularised, grad_W, retain_graph=True)
            grad_mean = None
            if centred_sum is not None:
                A = W if weight is None else weight.view(len(W), -1, 1) * W
                H, grad_mean = _reduce_over_ranks(ctx, H, grad_bias, A, centred_sum)
            grad_x = kernels.vjp(g, x, mean, W, weight, H.contiguous(), grad_bias, grad_mean)
        grad_weight = None if weight is None else grad_weight.to(weight.dtype)
        return grad_x, grad_weight, None if bias is None else grad_bias.to(bias.dtype), None


def _reduce_over_ranks(ctx, H: Tensor, grad_bias: Tensor, A: Tensor, centred_sum: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients with respect to covariance and mean of the sum of all ranks' losses, divided by the count.

    The collectives are those of the derivative of batch_statistics: other ranks may take that path.
    """
    group = active_group(ctx.spec.process_group)
    assert group is not None
    H = all_reduce_sum(H / ctx.count, group).clone()  # PyTorch waits for collectives, kernels do not
    blocks = A * grad_bias.view(len(A), -1, 1) + (H + H.mT) * centred_sum.view(len(A), -1, 1)
    grad_mean = -blocks.sum(1).flatten() / ctx.count
    return H, all_reduce_sum(torch.cat([grad_mean, grad_mean.new_zeros(1)]), group)[:-1].clone()


def _backward_torch(ctx, g: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, ...]:
    needed = ctx.needs_input_grad[:3]
    with torch.enable_grad():
        y = forward_torch(x, weight, bias, ctx.spec._replace(running=None))
    targets = [tensor for tensor, need in zip((x, weight, bias), needed, strict=True) if need and tensor is not None]
    gradients = iter(torch.autograd.grad(y, targets, g, create_graph=torch.is_grad_enabled()))
    return tuple(next(gradients) if need else None for need in needed)
