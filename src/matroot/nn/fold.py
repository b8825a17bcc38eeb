"""A trained decorrelated layer as part of the layer before it."""

import copy
from typing import TypeVar

import torch
from torch import nn

from .._tracing import autocast_disabled
from ._whitening import scale_and_shift
from .decorrelated import DecorrelatedBatchNorm

_KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_Layer = TypeVar("_Layer", nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@torch.no_grad()
def fold(layer: _Layer, norm: DecorrelatedBatchNorm) -> _Layer:
    """One layer that computes ``norm(layer(x))`` of evaluation mode, at the cost of ``layer`` alone.

    Like ``torch.nn.utils.fusion.fuse_conv_bn_eval``.

    Args:
        layer: Linear, Conv1d, Conv2d or Conv3d with as many output channels as ``norm`` has features.
        norm: a DecorrelatedBatchNorm in evaluation mode.

    Returns:
        A new layer like ``layer`` with other weights, and a bias; neither argument changes.

    Raises:
        TypeError: for another kind of layer, and for a subclass, a parametrization or pruning of these that may
            compute something else.
        ValueError: when the numbers of channels differ, when ``norm`` is in training mode, and when its groups straddle
            those of a grouped convolution, which one convolution cannot express.

    Example:
        >>> layer, norm = torch.nn.Linear(5, 8), matroot.nn.DecorrelatedBatchNorm1d(8).eval()
        >>> x = torch.randn(3, 5)
        >>> torch.allclose(matroot.nn.fold(layer, norm)(x), norm(layer(x)), atol=1e-5)
        True
    """
    _require_plain(layer)
    if not isinstance(norm, DecorrelatedBatchNorm):
        raise TypeError(f"norm must be a DecorrelatedBatchNorm, got {type(norm).__name__}")
    channels = len(layer.weight)
    if channels != norm.num_features:
        raise ValueError(f"layer has {channels} output channels, norm has {norm.num_features} features")
    if norm.training:
        raise ValueError("norm is in training mode, where it depends on the batch; call norm.eval() first")
    if not isinstance(layer, nn.Linear):
        size, conv_size = channels // norm.groups, channels // layer.groups
        if conv_size % size:
            raise ValueError(f"groups of {size} channels in norm straddle those of {conv_size} in the convolution")

    with autocast_disabled(layer.weight):
        # norm(z) = A (z - mean) + bias in each group
        A, bias = scale_and_shift(norm.whitening_matrix(), norm.weight, norm.bias)
        offset = (0 if layer.bias is None else layer.bias) - norm.running_mean.to(A.dtype)
        weight = A @ layer.weight.to(A.dtype).reshape(norm.groups, A.shape[-1], -1)
        offset = A @ offset.view(norm.groups, -1, 1) + (0 if bias is None else bias)

    folded = copy.deepcopy(layer)
    like = layer.weight
    folded.weight = nn.Parameter(weight.reshape(like.shape).to(like.dtype), requires_grad=like.requires_grad)
    folded.bias = nn.Parameter(offset.flatten().to(like.dtype), requires_grad=like.requires_grad)
    return folded


def _require_plain(layer: nn.Module) -> None:
    """Raise unless ``layer`` is an affine map with the weight and bias that it holds."""
    name = type(layer).__name__
    kind = next((kind for kind in _KINDS if isinstance(layer, kind)), None)
    if kind is None:
        raise TypeError(f"layer must be Linear, Conv1d, Conv2d or Conv3d, got {name}")
    methods = ("forward", "_conv_forward")
    if any(getattr(type(layer), method, None) is not getattr(kind, method, None) for method in methods):
        raise TypeError(f"layer is a {name}, which may compute something else than {kind.__name__}")
    # Parametrizations, and the hooks of pruning, compute them anew.
    if not layer._parameters.keys() >= {"weight", "bias"}:
        raise TypeError(f"weight or bias of this {name} are computed from others; make the parametrization permanent")
