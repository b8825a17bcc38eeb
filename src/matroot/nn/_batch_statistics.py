"""Mean and covariance of a batch, of this process or of a whole process group."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ._products import half_scatter, scatter

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

ProcessGroupLike: TypeAlias = "ProcessGroup | Literal['world'] | None"


class BatchStatistics(NamedTuple):
    """Statistics of C channels in G groups of d, over M positions here and ``count`` positions on all ranks."""

    count: Tensor
    """(): M, summed over the process group."""
    mean: Tensor
    """(C,)"""
    covariance: Tensor
    """(G, d, d), about the mean, divided by the count."""
    centred: Tensor
    """(C, M): this process's positions minus the mean; in float32 at least, on CUDA in the dtype of half features."""


def batch_statistics(rows: Tensor, groups: int = 1, process_group: ProcessGroupLike = None) -> BatchStatistics:
    """Statistics of ``rows`` (C, M), computed in float32 at least.

    Over a process group they are those of the concatenated positions of all ranks, whatever the number on each, and so
    are their gradients. The second moments are taken about the mean: E[x^2] - E[x]^2 cancels where the mean is
    large. No positions at all give NaN.
    """
    dtype = torch.promote_types(rows.dtype, torch.float32)
    group = active_group(process_group)
    totals = torch.cat([rows.sum(1, dtype=dtype), rows.new_full((1,), rows.shape[1], dtype=dtype)])
    if group is not None:
        totals = all_reduce_sum(totals, group)
    count = totals[-1].detach()
    mean = totals[:-1] / count
    centred = rows - mean[:, None]
    if rows.is_cuda:
        # Half features carry that rounding error already, and their products are summed in float32.
        centred = centred.to(rows.dtype)
    blocks = centred.unflatten(0, (groups, -1))
    scattered = scatter(blocks) if centred.dtype == dtype else half_scatter(blocks)
    if group is not None:
        scattered = all_reduce_sum(scattered, group)
    return BatchStatistics(count, mean, scattered / count, centred)


def active_group(process_group: ProcessGroupLike) -> "ProcessGroup | None":
    """The process group to sum over; None when that is this process alone."""
    if process_group is None or not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    group = torch.distributed.group.WORLD if process_group == "world" else process_group
    return group if torch.distributed.get_world_size(group) > 1 else None


def all_reduce_sum(tensor: Tensor, group: "ProcessGroup") -> Tensor:
    """The sum of the ``tensor`` of every rank."""
    # The functional collective is differentiable, eager and compiled: its derivative is again a sum over ranks.
    from torch.distributed._functional_collectives import all_reduce

    return all_reduce(tensor, "sum", group)
