"""Batch normalisation over all processes, on any device."""

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from .._tracing import autocast_disabled
from ..nn import DecorrelatedBatchNorm
from ..nn._batch_statistics import BatchStatistics, batch_statistics
from ..nn._whitening import channel_rows


class SyncedBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, *) by the statistics of all processes together.

    What ``torch.nn.SyncBatchNorm`` is on CUDA, on every device: in training mode the statistics, and their gradients,
    are those of the concatenated batch of all processes, which may differ in size; statistics are float32 at least.
    Parameters, buffers and names are those of BatchNorm, and so is evaluation. ValueError for fewer than 2 dimensions.
    """

    @classmethod
    def of(cls, layer: _BatchNorm) -> "SyncedBatchNorm":
        """A layer with the very parameters and buffers of a BatchNorm."""
        new = cls(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats, device="meta")
        new.weight, new.bias = layer.weight, layer.bias
        new.running_mean, new.running_var = layer.running_mean, layer.running_var
        new.num_batches_tracked = layer.num_batches_tracked
        return new.train(layer.training)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if not self.training:
            is_by_batch = self.running_mean is None
            return batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, is_by_batch, 0.0, self.eps
            )
        with autocast_disabled(input):
            batch = batch_statistics(channel_rows(input), self.num_features, "world")
            variance = batch.covariance.flatten()
            self._follow(batch, variance)
            scale = torch.rsqrt(variance + self.eps)
            if self.weight is not None:
                scale = scale * self.weight
            column = (-1, *(1,) * (input.ndim - 2))
            y = (input - batch.mean.view(column)) * scale.view(column)
            if self.bias is not None:
                y = y + self.bias.view(column)
            return y.to(input.dtype)

    @torch.no_grad()
    def _follow(self, batch: BatchStatistics, variance: Tensor) -> None:
        """Move the running statistics towards those of a batch; the running variance is divided by count - 1."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        factor = self.momentum if self.momentum is not None else 1 / self.num_batches_tracked.to(variance.dtype)
        unbiased = variance * (batch.count / (batch.count - 1).clamp_min(1))
        self.running_mean.lerp_(batch.mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected an input of at least 2 dimensions, got {input.ndim}")


def synchronise_norms(model: nn.Module, device: torch.device) -> nn.Module:
    """Make every batch normalisation, and every decorrelated one, use the statistics of all processes.

    The model is changed in place, and returned; its parameters and buffers stay the same tensors, and one layer in two
    places stays one. BatchNorm1d/2d/3d become ``torch.nn.SyncBatchNorm`` on CUDA, :class:`SyncedBatchNorm` elsewhere.
    TypeError for a subclass of them, which may do more than batch normalisation; the model does not change then.
    """
    replacements: dict[nn.Module, nn.Module] = {}
    for name, layer in model.named_modules():
        if isinstance(layer, _BatchNorm) and not isinstance(layer, nn.SyncBatchNorm | SyncedBatchNorm):
            if type(layer) not in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
                raise TypeError(f"layer {name!r} is a {type(layer).__name__}, not a batch normalisation of torch.nn")
            is_cuda = device.type == "cuda"
            replacements[layer] = (
                nn.SyncBatchNorm.convert_sync_batchnorm(layer) if is_cuda else SyncedBatchNorm.of(layer)
            )
    for parent in list(model.modules()):
        if isinstance(parent, DecorrelatedBatchNorm) and parent.process_group is None:
            parent.process_group = "world"
        # named_children would pass over a layer's second place in the same parent.
        for name, child in list(parent._modules.items()):
            if child in replacements:
                setattr(parent, name, replacements[child])
    return replacements.get(model, model)
