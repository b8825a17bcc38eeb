"""Whitening of features by the statistics of their batch, in torch operations."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .._api import invsqrtm
from .._tracing import autocast_disabled
from ..gradients import Gradient
from ..methods import Method
from ._batch_statistics import ProcessGroupLike, batch_statistics
from .covariance import add_to_diagonal

Track = Literal["whitening", "covariance"]


class RunningStats(NamedTuple):
    """Running statistics of a layer: buffers, and how they follow the batches."""

    mean: Tensor
    """(C,)"""
    matrix: Tensor
    """(G, d, d), the average of what ``track`` names."""
    num_batches: Tensor
    """()"""
    momentum: float | None
    track: Track


class WhiteningSpec(NamedTuple):
    """How a layer whitens a batch, apart from its parameters."""

    groups: int
    eps: float
    method: str | Method
    gradient: str | Gradient | None
    process_group: ProcessGroupLike
    running: RunningStats | None
    """Updated with the statistics of the batch; None: no update."""


def forward_torch(x: Tensor, weight: Tensor | None, bias: Tensor | None, spec: WhiteningSpec) -> Tensor:
    """weight * W (x - mean) + bias for features (N, C, *), with the statistics of their batch."""
    with autocast_disabled(x):
        batch = batch_statistics(channel_rows(x), spec.groups, spec.process_group)
        W = inverse_root(add_to_diagonal(batch.covariance, spec.eps), spec)
        update_running_stats(spec.running, batch.count, batch.mean, batch.covariance, W)
        return transform(batch.centred, *scale_and_shift(W, weight, bias), x)


def inverse_root(regularised: Tensor, spec: WhiteningSpec) -> Tensor:
    """W from covariance + eps I, both (G, d, d)."""
    return invsqrtm(regularised, spec.method, gradient=spec.gradient)


@torch.no_grad()
def update_running_stats(
    running: RunningStats | None, count: Tensor | int, mean: Tensor, covariance: Tensor, W: Tensor
) -> None:
    """Move the running statistics towards those of a batch, unless it has NaN or Inf or a single position."""
    if running is None:
        return
    updates = [(running.mean, mean), (running.matrix, W if running.track == "whitening" else covariance)]
    updates = [(average, new.to(average.dtype)) for average, new in updates]
    # The largest modulus shows Inf and NaN, in one kernel; isfinite takes five.
    sizes = [torch.linalg.vector_norm(new, math.inf) for _, new in updates]
    usable = (torch.maximum(*sizes) < math.inf) & (count > 1)
    running.num_batches.add_(usable)
    for average, new in updates:
        factor = running.momentum
        if factor is None:
            factor = 1 / running.num_batches.clamp_min(1).to(average.dtype)
        average.lerp_(torch.where(usable, new, average), factor)


def channel_rows(x: Tensor) -> Tensor:
    """(N, C, *) -> (C, M): a view when the channel is the fastest dimension, one copy otherwise."""
    return x.transpose(0, 1).flatten(1)


def scale_and_shift(W: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """weight * W, and the bias as (G, d, 1), in the dtype of ``W`` (G, d, d); W and None without affine parameters."""
    if weight is None or bias is None:
        return W, None
    weight, bias = (p.to(W.dtype).view(len(W), -1, 1) for p in (weight, bias))
    return weight * W, bias


def transform(centred: Tensor, A: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """A centred + bias for ``centred`` (C, M) and A (G, d, d), with the shape, layout and dtype of ``x``."""
    blocks = centred.unflatten(0, (len(A), -1))
    A, bias = A.to(centred.dtype), None if bias is None else bias.to(centred.dtype)
    # The products have the layout of x, so that channels-last stays so without a copy for one group.
    if x.stride(1) == 1:
        y = blocks.mT @ A.mT if bias is None else torch.baddbmm(bias.mT, blocks.mT, A.mT)  # G x M x d
        y = y.transpose(0, 1).reshape(x.shape[0], *x.shape[2:], x.shape[1]).movedim(-1, 1)
    else:
        y = A @ blocks if bias is None else torch.baddbmm(bias, A, blocks)  # G x d x M
        y = y.reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1).contiguous()
    return y.to(x.dtype)
