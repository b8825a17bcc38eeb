"""Features whose channel covariance is known exactly."""

import math

import torch
from torch import Tensor


def correlated(*shape: int, condition: float = 10.0, mean: float = 0.0, dtype=torch.float64, seed: int = 0) -> Tensor:
    """Features (N, C, *) with sample mean ``mean`` and a dense sample covariance of condition number ``condition``.

    Its eigenvalues fall from 1 to 1/condition. There must be more than C positions.
    """
    generator = torch.Generator().manual_seed(seed)
    channels, positions = shape[1], shape[0] * math.prod(shape[2:])
    assert positions > channels
    Z = torch.randn(positions, channels, generator=generator, dtype=torch.float64)
    white = torch.linalg.qr(Z - Z.mean(0)).Q * positions**0.5
    U = torch.linalg.qr(torch.randn(channels, channels, generator=generator, dtype=torch.float64)).Q
    values = torch.logspace(0, -math.log10(condition), channels, dtype=torch.float64)
    rows = white * values.sqrt() @ U.T + mean
    return rows.reshape(shape[0], *shape[2:], channels).movedim(-1, 1).contiguous().to(dtype)


def covariance(x: Tensor) -> Tensor:
    """(C, C), about the mean, divided by the number of positions, in float64."""
    return torch.cov(x.detach().double().transpose(0, 1).flatten(1), correction=0).reshape(x.shape[1], x.shape[1])
