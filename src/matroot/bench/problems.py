"""Matrices with known spectra, values with gradients, and their errors."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]

SPECTRA = ("wishart", "log", "clustered", "one-small", "one-large", "low-rank")

DISTINCT = 1000
"""Matrices of a batch that differ; more are repetitions, which cost the same."""


def covariances(batch: int, n: int, samples: int | None = None, seed: int = 0) -> Tensor:
    """Float64 covariances of standard normal samples, 2n of them unless said otherwise."""
    samples = 2 * n if samples is None else samples
    data = torch.randn(batch, n, samples, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return data @ data.mT / samples


def symmetric(batch: int, n: int, seed: int = 1) -> Tensor:
    """Symmetric normal matrices in float64, as gradients of the output."""
    G = torch.randn(batch, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return 0.5 * (G + G.mT)


def covariances_and_gradients(batch: int, n: int, distinct: int = DISTINCT) -> tuple[Tensor, Tensor]:
    """Covariances and symmetric gradients of the output in float64, (batch, n, n); a large batch repeats matrices."""
    different = min(batch, distinct)
    repeats = -(-batch // different)
    A, G = (T.repeat(repeats, 1, 1)[:batch] for T in (covariances(different, n), symmetric(different, n)))
    return A, G


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


def forward_backward(function: Callable[[Tensor], Any], X: Tensor, G: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """One or several outputs at ``X``, which requires a gradient, and that of the sum of <output, G>."""
    outputs = function(X)
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return outputs, torch.autograd.grad(outputs, X, (G,) * len(outputs))[0]


def value_and_gradient(function: Function, A: Tensor, G: Tensor) -> tuple[Tensor, Tensor]:
    """function(A), and the gradient of <function(A), G> with respect to A."""
    (value,), gradient = forward_backward(function, A.detach().requires_grad_(), G)
    return value.detach(), gradient


def relative_errors(found: Tensor, true: Tensor) -> Tensor:
    """Relative Frobenius distance per matrix, computed in float64."""
    norm = torch.linalg.matrix_norm
    return norm(found.detach().double() - true.detach()) / norm(true.detach())


def largest_error(found: Tensor, true: Tensor) -> float:
    """The largest relative distance in a batch, NaN if one is."""
    return relative_errors(found, true).max().item()
