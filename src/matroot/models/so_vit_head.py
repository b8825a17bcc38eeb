"""Heads of second-order transformers: the published one, that of power iteration, and the class token alone."""

import torch
from torch import Tensor, nn

from .._tracing import autocast_disabled
from ..methods import PowerIteration
from ..nn import CovariancePool, SecondOrderHead
from ..nn.covariance import flush_subnormal


class LearnedPowerPool(CovariancePool):
    """Covariance pool with power iteration from a learned vector in the place of the root.

    Returns the triangle of A/sqrt(s): u from steps u <- A u/|A u| that start from the parameter ``start``,
    s = u^T A u. That is sqrt(s) u u^T + (A - s u u^T)/sqrt(s): the root of the dominant pair, the rest scaled with it.
    s is the mean eigenvalue at least; a covariance of zero gives zero.

    Args:
        in_channels: channels of the feature maps.
        reduce_to: channels after the reduction; None: no reduction.
        dims: number of spatial dimensions.
        iterations: number of steps, one as published.
    """

    def __init__(self, in_channels: int, reduce_to: int | None = 48, dims: int = 1, iterations: int = 1) -> None:
        super().__init__(in_channels, reduce_to, dims, method=PowerIteration(iterations), gradient="unrolled")
        self.iterations = iterations
        self.start = nn.Parameter(torch.randn(in_channels if reduce_to is None else reduce_to))

    def pool_covariance(self, covariance: Tensor, dtype: torch.dtype) -> Tensor:
        A = flush_subnormal(covariance)
        tiny = torch.finfo(A.dtype).tiny
        with autocast_disabled(A):
            u = self.start.to(A.dtype)[:, None]
            for _ in range(self.iterations):
                u = A @ u
                u = u / torch.linalg.vector_norm(u, dim=-2, keepdim=True).clamp_min(tiny)
            mean = A.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
            dominant = torch.maximum(u.mT @ (A @ u), mean).clamp_min(tiny)
            return self.flatten(A * torch.rsqrt(dominant), dtype)


class ClassTokenHead(nn.Module):
    """Logits of the class token alone: (B, 1 + N, width) -> (B, num_classes)."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.first_order = nn.Linear(width, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.first_order(tokens[:, 0])


def power_head(width: int, num_classes: int, reduce_to: int) -> SecondOrderHead:
    """The published head with one power step from a learned vector in the place of the root."""
    pool = LearnedPowerPool(width, reduce_to)
    head = SecondOrderHead(width, num_classes, reduce_to, pool.method, pool.gradient)
    head.pool = pool
    return head


def require_classes(num_classes: int) -> None:
    """Raise ValueError unless there is a class: the head adds the logits of two maps, and has nothing without."""
    if num_classes < 1:
        raise ValueError(f"num_classes must be 1 or more, got {num_classes!r}; forward_features needs no classifier")


def replace_classifiers(head: SecondOrderHead | ClassTokenHead, num_classes: int) -> None:
    """New linear maps to ``num_classes`` logits, on the same device; pool and reduction stay as they are."""
    require_classes(num_classes)
    for name, layer in head.named_children():
        if isinstance(layer, nn.Linear):
            weight = layer.weight
            new = nn.Linear(layer.in_features, num_classes, device=weight.device, dtype=weight.dtype)
            setattr(head, name, initialise(new))
    head.num_classes = num_classes


def initialise(layer: nn.Linear) -> nn.Linear:
    """Weights from the normal distribution of deviation 0.02, cut at 2, as usual for transformers; bias 0."""
    nn.init.trunc_normal_(layer.weight, std=0.02)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
