"""Statistics of normalisation layers, measured anew in the place of running averages."""

from collections.abc import Collection, Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .decorrelated import DecorrelatedBatchNorm


@torch.no_grad()
def update_statistics(model: nn.Module, inputs: Iterable[Tensor], keep: Collection[nn.Module] = ()) -> None:
    """Set the running statistics of batch normalisations and decorrelated layers to their means over some batches.

    Running averages follow weights that move. A layer that amplifies directions of little variance, as exact whitening
    does, may train well and evaluate badly with statistics of a few steps ago, until the learning rate is small.
    Dropout and all other layers are in evaluation mode meanwhile. Like ``torch.optim.swa_utils.update_bn``, which
    knows batch normalisation alone.

    Args:
        model: its weights stay as they are, and so do the training flags of its modules.
        inputs: batches, called with as ``model(batch)``; a few thousand images suffice. None at all leaves the
            statistics reset.
        keep: layers whose statistics stay, such as frozen ones.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(5, 4), matroot.nn.DecorrelatedBatchNorm1d(4))
        >>> matroot.nn.update_statistics(model, [torch.randn(32, 5) for _ in range(3)])
        >>> model[1].num_batches_tracked
        tensor(3)
    """
    norms = [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm | DecorrelatedBatchNorm) and layer.running_mean is not None
    ]
    norms = [layer for layer in norms if layer not in keep]
    momenta = [norm.momentum for norm in norms]
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    for norm in norms:
        norm.training = True  # of the norm alone: some have a dropout within
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    try:
        for batch in inputs:
            model(batch)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, training in flags:
            module.training = training
