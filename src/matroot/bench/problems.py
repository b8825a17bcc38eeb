"""Matrices with known spectra, and the exact answers for them."""

import math

import torch
from torch import Tensor

from .timer import Function

SPECTRA = ("wishart", "log", "clustered", "one-small", "one-large", "low-rank")


def covariances(batch: int, n: int, samples: int | None = None, seed: int = 0) -> Tensor:
    """Float64 covariances of standard normal samples, 2n of them unless said otherwise."""
    samples = 2 * n if samples is None else samples
    data = torch.randn(batch, n, samples, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return data @ data.mT / samples


def symmetric(batch: int, n: int, seed: int = 1) -> Tensor:
    """Symmetric normal matrices in float64, to send back as gradients."""
    G = torch.randn(batch, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return 0.5 * (G + G.mT)


def spectrum(kind: str, n: int, condition: float) -> Tensor:
    """Eigenvalues in (0, 1] with this condition number, float64.

    log: evenly spaced logarithms; clustered: half ones, half 1/condition; one-small, one-large: all equal but
    one; low-rank: logarithmic down to 1/sqrt(condition), a half of exact zeros.
    """
    values = torch.ones(n, dtype=torch.float64)
    if kind == "log":
        return torch.logspace(0, -math.log10(condition), n, dtype=torch.float64)
    if kind == "clustered":
        values[n // 2 :] = 1 / condition
    elif kind == "one-small":
        values[-1] = 1 / condition
    elif kind == "one-large":
        values[1:] = 1 / condition
    elif kind == "low-rank":
        values = torch.logspace(0, -0.5 * math.log10(condition), n, dtype=torch.float64)
        values[(n + 1) // 2 :] = 0
    else:
        raise ValueError(f"unknown spectrum {kind!r}; known are {', '.join(SPECTRA[1:])}")
    return values


def with_spectrum(kind: str, batch: int, n: int, condition: float, seed: int = 0) -> Tensor:
    """Float64 matrices of a spectrum in random bases."""
    random = torch.randn(batch, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    U = torch.linalg.qr(random)[0]
    A = (U * spectrum(kind, n, condition)) @ U.mT
    return 0.5 * (A + A.mT)


def value_and_gradient(function: Function, A: Tensor, G: Tensor) -> tuple[Tensor, Tensor]:
    """function(A), and the gradient of <function(A), G> by A."""
    A = A.detach().requires_grad_()
    value = function(A)
    return value.detach(), torch.autograd.grad(value, A, G)[0]


def distance(found: Tensor, true: Tensor) -> Tensor:
    """Relative Frobenius distance per matrix, computed in float64."""
    norm = torch.linalg.matrix_norm
    return norm(found.double() - true) / norm(true)


def worst_distance(found: Tensor, true: Tensor) -> float | None:
    """The largest distance in a batch, to three digits; None where it is not finite."""
    largest = distance(found, true).max()
    return float(f"{largest.item():.2e}") if torch.isfinite(largest) else None
