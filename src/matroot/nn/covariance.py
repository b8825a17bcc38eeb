"""Covariances of feature maps."""

import torch
from torch import Tensor

from .._symbolic import one_node
from .._tracing import autocast_disabled
from ..backends import torch_ops
from ._products import scatter
from ._validation import require_feature_maps


@one_node
def covariance(x: Tensor, *, correction: int = 0, eps: float = 0.0) -> Tensor:
    """Covariance of the channels over all positions, one matrix per map.

    One position gives zeros. Like ``torch.stack([torch.cov(m.flatten(1), correction=0) for m in x])``.

    Args:
        x: (B, C, *spatial), real floating point, in any memory format.
        correction: the sum is divided by N - correction for N positions (never by less than one), as in ``torch.cov``.
        eps: added to the diagonal.

    Returns:
        The covariances, (B, C, C), in the dtype of ``x``, float32 for half and bfloat16, also inside autocast.

    Raises:
        TypeError: for integers and complex numbers.
        ValueError: for fewer than three dimensions or no positions.

    Example:
        >>> matroot.nn.covariance(torch.randn(2, 16, 7, 7)).shape
        torch.Size([2, 16, 16])
    """
    require_feature_maps(x)
    X, _ = deviations(x.flatten(2))
    return covariance_of_deviations(X, correction=correction, eps=eps)


def deviations(X: Tensor) -> tuple[Tensor, Tensor]:
    """(*, C, N) -> deviations from the mean (*, C, N) and the mean (*, C, 1), in float32 at least."""
    X = X.to(torch.promote_types(X.dtype, torch.float32))
    mean = X.mean(-1, keepdim=True)
    return X - mean, mean


def covariance_of_deviations(X: Tensor, *, correction: int, eps: float) -> Tensor:
    """X X^T/(N - correction) + eps I of centred X (*, C, N), shape (*, C, C)."""
    with autocast_disabled(X):
        covariance = scatter(X) / max(X.shape[-1] - correction, 1)
    return add_to_diagonal(covariance, eps) if eps else covariance


def add_to_diagonal(covariance: Tensor, eps: float) -> Tensor:
    """covariance + eps I, for (*, d, d)."""
    return covariance + eps * torch_ops.identity(covariance)


def flush_subnormal(covariance: Tensor) -> Tensor:
    """Covariances (*, d, d) with subnormal ones replaced by zero: rounding makes those indefinite."""
    size = covariance.detach().diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]  # no entry is larger
    return covariance * (size >= torch.finfo(covariance.dtype).tiny)
