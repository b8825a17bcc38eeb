"""The kernels that whiten features as opaque operators: ``torch.compile`` does not look inside.

Arguments and results are those of ``backends.triton.whitening.launch``; features may be in any layout.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..backends.triton.whitening import launch as kernels

_library = torch.library.Library("matroot", "FRAGMENT")


def _define(schema: str, implementation: Callable, fake: Callable) -> Callable:
    name = schema.partition("(")[0]
    _library.define(schema)
    _library.impl(name, implementation, "CompositeExplicitAutograd")
    torch.library.register_fake(f"matroot::{name}")(fake)
    return getattr(torch.ops.matroot, name)


def _features(x: Tensor) -> Tensor:
    """As the kernels read them."""
    x = x.resolve_neg()
    return x if kernels.channels_last(x) else x.movedim(1, -1).contiguous().movedim(-1, 1)


def _fake_statistics(x: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    size = x.shape[1] // groups
    mean = x.new_empty(x.shape[1], dtype=torch.float32)
    covariance = mean.new_empty(groups, size, size)
    return mean, covariance, torch.empty_like(covariance)


def _fake_gradients(
    g: Tensor, x: Tensor, mean: Tensor, W: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(mean), torch.empty_like(mean), torch.empty_like(W)


def _fake_features(x: Tensor) -> Tensor:
    return torch.empty_like(x.movedim(1, -1), memory_format=torch.contiguous_format).movedim(-1, 1)


whitening_statistics = _define(
    "whitening_statistics(Tensor x, int groups, float eps) -> (Tensor, Tensor, Tensor)",
    lambda x, groups, eps: kernels.statistics(_features(x), groups, eps),
    _fake_statistics,
)
whitening_transform = _define(
    "whitening_transform(Tensor x, Tensor mean, Tensor W, Tensor? weight, Tensor? bias) -> Tensor",
    lambda x, mean, W, weight, bias: kernels.transform(_features(x), mean, W, weight, bias),
    lambda x, mean, W, weight, bias: _fake_features(x),
)
whitening_gradients = _define(
    "whitening_gradients(Tensor g, Tensor x, Tensor mean, Tensor W, Tensor? weight) -> (Tensor, Tensor, Tensor)",
    lambda g, x, mean, W, weight: kernels.gradients(_features(g), _features(x), mean, W, weight),
    _fake_gradients,
)
whitening_vjp = _define(
    "whitening_vjp(Tensor g, Tensor x, Tensor mean, Tensor W, Tensor? weight, Tensor H, Tensor grad_bias) -> Tensor",
    lambda g, x, mean, W, weight, H, grad_bias: kernels.vjp(
        _features(g), _features(x), mean, W, weight, H, grad_bias, None
    ),
    lambda g, x, mean, W, weight, H, grad_bias: _fake_features(x),
)
