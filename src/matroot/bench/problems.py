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


def normal(*shape: int, seed: int, device: str = "cpu", dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers; those of another kind of device are others."""
    return torch.randn(*shape, dtype=dtype, device=device, generator=torch.Generator(device).manual_seed(seed))


def covariances(
    batch: int,
    n: int,
    samples: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Covariances of standard normal samples, 2n of them unless said otherwise; float64 or complex128."""
    samples = 2 * n if samples is None else samples
    data = normal(batch, n, samples, seed=seed, device=device, dtype=dtype)
    return data @ data.mH / samples


def symmetric(batch: int, n: int, seed: int = 1, device: str = "cpu", dtype: torch.dtype = torch.float64) -> Tensor:
    """Symmetric normal matrices, as gradients of the output; complex128 ones are Hermitian."""
    G = normal(batch, n, n, seed=seed, device=device, dtype=dtype)
    return 0.5 * (G + G.mH)


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


def with_spectrum(
    kind: str,
    batch: int,
    n: int,
    condition: float,
    seed: int = 0,
    device: str = "cpu",
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Matrices of a spectrum in random bases; float64 or complex128."""
    U = torch.linalg.qr(normal(batch, n, n, seed=seed, device=device, dtype=dtype))[0]
    A = (U * spectrum(kind, n, condition).to(device)) @ U.mH
    return 0.5 * (A + A.mH)


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
    wide = torch.promote_types(true.dtype, torch.float64)
    return norm(found.detach().to(wide) - true.detach()) / norm(true.detach())


def root_unit(n: int, condition: float | Tensor, eps: float) -> Any:
    """u (sqrt(n) + sqrt(condition)): what rounding alone costs a root, as a relative error."""
    return 0.5 * eps * (n**0.5 + condition**0.5)


def inverse_unit(n: int, condition: float | Tensor, eps: float) -> Any:
    """u (sqrt(n) + condition): the same of an inverse root, and of gradients."""
    return 0.5 * eps * (n**0.5 + condition)


def largest_error(found: Tensor, true: Tensor) -> float:
    """The largest relative distance in a batch, NaN if one is."""
    return relative_errors(found, true).max().item()
