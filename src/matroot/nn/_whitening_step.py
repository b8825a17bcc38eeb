"""Whitening a batch as one differentiable step, where kernels pass over the features: on CUDA, half, channels last.

With A = weight * W, W = (covariance + eps I)^(-1/2) and y = A (x - mean) + bias, a gradient g by y gives, summed
over all positions of the batch,

    by the bias     sum g
    by A            T = sum g (x - mean)^T, so weight * T by W, and the rows of T * W summed by the weight
    by the mean     -A^T sum g; its part in the covariance is none, for x - mean sums to zero
    by x            A^T g + ((H + H^T) (x - mean) - A^T sum g) / count, with H the gradient by the covariance

Where these must be differentiated or batched, the step is done again in ordinary operations.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.graph import saved_tensors_hooks

from .._tracing import forward_mode, is_plain_eager, needs_grad
from ..backends.triton.whitening import launch as triton_features
from ._batch_statistics import add_to_diagonal, sum_over

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Recipe(NamedTuple):
    """What a layer does to a batch, apart from its parameters."""

    groups: int
    eps: float
    ranks: "ProcessGroup | None"
    root: Callable[[Tensor], Tensor]
    """covariance + eps I to W"""
    remember: Callable[[Tensor | int, Tensor, Tensor, Tensor], None]
    """Told the number of positions, mean, covariance and W of every batch."""
    ordinary: Callable[[Tensor, Tensor | None, Tensor | None], Tensor]
    """x, weight and bias to y, in ordinary operations."""


def fits(x: Tensor, groups: int) -> bool:
    """Whether features (N, C, *) can be whitened in this way."""
    return is_plain_eager(x) and not forward_mode() and triton_features.fits(x, groups)


def whiten(x: Tensor, weight: Tensor | None, bias: Tensor | None, recipe: Recipe) -> Tensor:
    """weight * W (x - mean) + bias for features (N, C, *) that fit, with the statistics of their batch."""
    if needs_grad(*(tensor for tensor in (x, weight, bias) if tensor is not None)):
        return _Step.apply(x, weight, bias, recipe)
    batch = _batch(x, recipe)
    return _transformed(x, weight, bias, recipe, batch, recipe.root(batch.shifted).contiguous())


class _Batch(NamedTuple):
    count: Tensor | int
    mean: Tensor
    covariance: Tensor
    shifted: Tensor
    """covariance + eps I"""
    excess: Tensor | None
    """(C,): over ranks, what x - mean sums to on this one."""


def _batch(x: Tensor, recipe: Recipe) -> _Batch:
    own, covariance, shifted = triton_features.statistics(x, recipe.groups, recipe.eps)
    positions = x.numel() // x.shape[1]
    if recipe.ranks is None:
        return _Batch(positions, own, covariance, shifted, None)
    # The sums are those of batch_statistics, in which a rank without positions takes part.
    totals = sum_over(recipe.ranks, torch.cat([positions * own, own.new_full((1,), positions)]))
    count, mean = totals[-1], totals[:-1] / totals[-1]
    away = (own - mean).view(recipe.groups, -1, 1)
    covariance = sum_over(recipe.ranks, positions * (covariance + away * away.mT)) / count
    return _Batch(count, mean, covariance, add_to_diagonal(covariance, recipe.eps), positions * (own - mean))


def _transformed(x, weight, bias, recipe: Recipe, batch: _Batch, W: Tensor) -> Tensor:
    # Now, and not when all is done: a checkpoint goes back no further than to the last tensor saved.
    recipe.remember(batch.count, batch.mean, batch.covariance, W)
    return triton_features.transform(x, batch.mean, W, weight, bias)


def _same(tensor: Tensor) -> Tensor:
    return tensor


class _Step(Function):
    """(x, weight, bias) -> y"""

    @staticmethod
    def forward(ctx, x, weight, bias, recipe):
        batch = _batch(x, recipe)
        ctx.recipe, ctx.count = recipe, batch.count
        # Out of sight of a checkpoint, which would run all again for a backward inside a backward.
        with torch.set_grad_enabled(ctx.needs_input_grad[0]), saved_tensors_hooks(_same, _same):
            ctx.shifted = batch.shifted.requires_grad_(ctx.needs_input_grad[0])
            ctx.root = recipe.root(ctx.shifted).contiguous()
        ctx.save_for_backward(x, weight, bias, batch.mean, batch.excess)
        ctx.set_materialize_grads(False)
        return _transformed(x, weight, bias, recipe, batch, ctx.root.detach())

    @staticmethod
    def backward(ctx, g, *_):
        x, weight, bias, mean, excess = ctx.saved_tensors
        if g is None:
            return None, None, None, None
        if torch.is_grad_enabled() or not is_plain_eager(g):
            return *_by_ordinary_operations(ctx, g, x, weight, bias), None
        if not triton_features.channels_last(g):
            g = g.movedim(1, -1).contiguous().movedim(-1, 1)
        g, W = g.resolve_neg(), ctx.root.detach()
        total, by_weight, by_W = triton_features.gradients(g, x, mean, W, weight)
        by_x = None
        if ctx.needs_input_grad[0]:
            # Kept for another backward through the same graph: these are small.
            (H,) = torch.autograd.grad(ctx.root, ctx.shifted, by_W, retain_graph=True)
            by_mean = None
            if excess is not None:
                A = W if weight is None else weight.view(len(W), -1, 1) * W
                H, by_mean = _over_ranks(ctx, H, total, A, excess)
            by_x = triton_features.vjp(g, x, mean, W, weight, H.contiguous(), total, by_mean)
        by_weight = None if weight is None else by_weight.to(weight.dtype)
        return by_x, by_weight, None if bias is None else total.to(bias.dtype), None


def _over_ranks(ctx, H: Tensor, total: Tensor, A: Tensor, excess: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients by covariance and mean of the sum of all ranks' losses, divided by the count.

    What ranks add to the sums is what they add through batch_statistics: some may take that way.
    """
    H = sum_over(ctx.recipe.ranks, H / ctx.count).clone()  # kernels do not wait for collectives, PyTorch does
    by_mean = -(A * total.view(len(A), -1, 1) + (H + H.mT) * excess.view(len(A), -1, 1)).sum(1).flatten() / ctx.count
    return H, sum_over(ctx.recipe.ranks, torch.cat([by_mean, by_mean.new_zeros(1)]))[:-1].clone()


def _by_ordinary_operations(ctx, g: Tensor, *inputs: Tensor | None) -> tuple[Tensor | None, ...]:
    needed = ctx.needs_input_grad[:3]
    with torch.enable_grad():
        y = ctx.recipe.ordinary(*inputs)
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need and tensor is not None]
    found = iter(torch.autograd.grad(y, wanted, g, create_graph=torch.is_grad_enabled()))
    return tuple(next(found) if need else None for need in needed)
