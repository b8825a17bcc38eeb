"""Mean and covariance of a batch, of this process or of a whole process group."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.autograd import Function

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Group: TypeAlias = "ProcessGroup | Literal['world'] | None"


class BatchStatistics(NamedTuple):
    """Statistics of C channels in G groups of d, over M positions here and ``count`` positions everywhere."""

    count: Tensor
    """(): M, summed over the process group."""
    mean: Tensor
    """(C,)"""
    covariance: Tensor
    """(G, d, d), about the mean, divided by the count."""
    centred: Tensor
    """(C, M): this process's positions less the mean; in float32 at least, on CUDA in the dtype of half features."""


def batch_statistics(rows: Tensor, groups: int = 1, process_group: Group = None) -> BatchStatistics:
    """Statistics of ``rows`` (C, M), computed in float32 at least.

    Over a process group they are those of all ranks' positions side by side, whatever the number on each, and so
    are their gradients. The second moments are taken about the mean: E[x^2] - E[x]^2 cancels where the mean is
    large. No positions at all give NaN.
    """
    dtype = torch.promote_types(rows.dtype, torch.float32)
    ranks = ranks_of(process_group)
    totals = torch.cat([rows.sum(1, dtype=dtype), rows.new_full((1,), rows.shape[1], dtype=dtype)])
    if ranks is not None:
        totals = sum_over(ranks, totals)
    count = totals[-1].detach()
    mean = totals[:-1] / count
    centred = rows - mean[:, None]
    if rows.is_cuda:
        # Half features are rounded by as much already, and their products are summed in float32.
        centred = centred.to(rows.dtype)
    blocks = centred.unflatten(0, (groups, -1))
    scatter = blocks @ blocks.mT if centred.dtype == dtype else _Scatter.apply(blocks)
    if ranks is not None:
        scatter = sum_over(ranks, scatter)
    return BatchStatistics(count, mean, scatter / count, centred)


class _Scatter(Function):
    """X X^T in float32 of half X (G, d, M)."""

    @staticmethod
    def forward(ctx, X):
        ctx.save_for_backward(X)
        return torch.bmm(X, X.mT, out_dtype=torch.float32)

    @staticmethod
    def backward(ctx, *grads):
        (X,) = ctx.saved_tensors
        return (grads[0] + grads[0].mT).to(X.dtype) @ X


def add_to_diagonal(covariance: Tensor, eps: float) -> Tensor:
    """covariance + eps I, for (*, d, d)."""
    return covariance + eps * torch.diag_embed(torch.ones_like(covariance[..., 0]))


def ranks_of(process_group: Group) -> "ProcessGroup | None":
    """The group to sum over; None when that is this process alone."""
    if process_group is None or not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    ranks = torch.distributed.group.WORLD if process_group == "world" else process_group
    return ranks if torch.distributed.get_world_size(ranks) > 1 else None


def sum_over(ranks: "ProcessGroup", tensor: Tensor) -> Tensor:
    """The sum of the ``tensor`` of every rank."""
    # The functional collective is differentiable, eager and compiled: its derivative is again a sum over ranks.
    from torch.distributed._functional_collectives import all_reduce

    return all_reduce(tensor, "sum", ranks)
