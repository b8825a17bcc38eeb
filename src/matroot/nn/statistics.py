"""Statistics of normalisation layers, measured anew in the place of running averages."""

from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from .decorrelated import DecorrelatedBatchNorm


class StatisticsError(ValueError):
    """The statistics of a layer are NaN, Inf, or those of no batch."""


@torch.no_grad()
def update_statistics(
    model: nn.Module,
    inputs: Iterable[Any],
    keep: Collection[nn.Module] = (),
    device: torch.device | str | None = None,
) -> None:
    """Set the running statistics of batch normalisations and decorrelated layers to their means over some batches.

    Running averages follow weights that move. A layer that amplifies directions of little variance, as exact whitening
    does, may train well and evaluate badly with statistics of a few steps ago, until the learning rate is small.
    Dropout and all other layers are in evaluation mode meanwhile. Like ``torch.optim.swa_utils.update_bn``, which
    knows batch normalisation alone.

    Args:
        model: its weights stay as they are, and so do the training flags of its modules.
        inputs: batches, called with as ``model(batch)``; a few thousand images suffice. Of a list or tuple, such as
            images and labels, the first element is the batch.
        keep: layers whose statistics stay, such as frozen ones, and those that the model calls in training alone.
        device: where batches are moved to first; None: nowhere.

    Raises:
        ValueError: if there are no batches, or if the statistics of a layer come out NaN or Inf or are those of no
            batch. After any error, the model's and the loader's too, the statistics are those from before.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(5, 4), matroot.nn.DecorrelatedBatchNorm1d(4))
        >>> matroot.nn.update_statistics(model, [torch.randn(32, 5) for _ in range(3)])
        >>> model[1].num_batches_tracked
        tensor(3)
    """
    norms = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm | DecorrelatedBatchNorm)
        and layer.running_mean is not None
        and layer not in keep
    }
    before = {
        name: {key: value.clone() for key, value in norm.named_buffers(recurse=False)} for name, norm in norms.items()
    }
    momenta = {name: norm.momentum for name, norm in norms.items()}
    flags = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        for norm in norms.values():
            norm.training = True  # of the norm alone: some have a dropout within
            norm.reset_running_stats()
            norm.momentum = None  # the mean of all batches
        measured = False
        for batch in inputs:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
            measured = True
        if not measured:
            raise ValueError("there are no batches to measure statistics of")
        for name, norm in norms.items():
            _require_measured(name, norm)
    except BaseException:
        for name, norm in norms.items():
            for key, value in before[name].items():
                getattr(norm, key).copy_(value)
        raise
    finally:
        for name, norm in norms.items():
            norm.momentum = momenta[name]
        for module, training in flags:
            module.training = training


def _require_measured(name: str, norm: nn.Module) -> None:
    """Raise unless batches gave a layer statistics, and finite ones."""
    if not all(value.isfinite().all() for value in norm.buffers(recurse=False)):
        raise StatisticsError(f"the statistics of layer '{name}' came out NaN or Inf")
    if norm.num_batches_tracked == 0:
        raise StatisticsError(
            f"no batch gave layer '{name}' statistics: each was NaN, Inf or a single position there, or the model does "
            "not call it in evaluation, see keep="
        )
