"""How large an error may be: every method is a function of the eigenvalues, up to rounding."""

import math

import torch
from torch import Tensor

from ..coefficients import taylor
from ..methods import Eigen, Method, Minimax, NewtonSchulz, Pade, Taylor

ROUNDING = 30
"""Converged methods err by a small multiple of eps times a condition number: at most 6 in the committed accuracy."""

DECOMPOSED = 2
"""Multiples of n eps that an eigendecomposition may be off instead where that is more; one was measured on a GPU."""

TRUNCATED = 2000
"""Multiples of eps that truncated ones may add: Pade's polynomials lose 4^degree."""

STABLE = 15
"""Steps of Newton-Schulz after which zero eigenvalues may have amplified rounding."""


def approximant(method: Method, x: Tensor, inverse: bool = False) -> Tensor:
    """What a truncated method makes of eigenvalues 0 <= x <= 1 of a matrix of norm one; TypeError for other methods."""
    if isinstance(method, Taylor):
        powers = (1 - x)[..., None] ** torch.arange(method.degree + 1)
        return powers @ torch.tensor([float(c) for c in taylor(method.degree, inverse)], dtype=x.dtype)
    if isinstance(method, Pade):
        s = x.clamp(1e-300, 1).sqrt()
        root = s / torch.tanh((2 * method.degree + 1) * torch.atanh(s))
        return 1 / root if inverse else root
    if isinstance(method, NewtonSchulz):
        z = torch.ones_like(x)
        for _ in range(method.iterations):
            z = 0.5 * z * (3 - z * z * x)
        return z if inverse else x * z
    raise TypeError(f"{type(method).__name__} is not a truncated method")


def value_bound(method: Method | None, values: Tensor, eps: float, inverse: bool = False) -> float | None:
    """The largest relative Frobenius error of a root of matrices with these eigenvalues (batch, n), in float64.

    None where theory says nothing: other methods, many steps of Newton-Schulz, and the inverse root of matrices that
    rounding makes singular.
    """
    condition = _condition(values)
    if inverse and not eps * condition < 0.01:
        return None
    if isinstance(method, Eigen | Minimax):
        return _rounding(method, values) * eps * (condition if inverse else math.sqrt(min(condition, 1 / eps)))
    if not isinstance(method, Taylor | Pade | NewtonSchulz):
        return None
    if isinstance(method, NewtonSchulz) and method.iterations > STABLE:
        return None
    values = values.clamp_min(0)
    norm = torch.linalg.vector_norm if isinstance(method, Taylor | Pade) or method.norm == "frobenius" else torch.sum
    x = values / norm(values, dim=-1, keepdim=True)
    true = x.rsqrt() if inverse else x.sqrt()
    size = torch.linalg.vector_norm
    truncation = (size(approximant(method, x, inverse) - true, dim=-1) / size(true, dim=-1)).max().item()
    return 1.05 * truncation + TRUNCATED * eps


def whitening_bound(method: Method | None, values: Tensor, eps: float) -> float | None:
    """The same for the mean of |singular values of A^(-1/2) X - 1|, where A = X X^T."""
    if isinstance(method, Eigen | Minimax):
        return value_bound(method, values, eps, inverse=True)
    if method is None:
        return None
    x = values / torch.linalg.vector_norm(values, dim=-1, keepdim=True)
    return 1.05 * (approximant(method, x, inverse=True) * x.sqrt() - 1).abs().mean().item() + TRUNCATED * eps


def gradient_bound(method: Method | None, values: Tensor, eps: float) -> float | None:
    """The largest relative error of an exact gradient; None where rounding makes the matrices singular."""
    condition = _condition(values)
    return _rounding(method, values) * eps * condition if eps * condition < 0.01 else None


def lyapunov_factor(values: Tensor, iterations: int) -> Tensor:
    """X_ij/C_ij after so many steps of ``Lyapunov`` on the exact roots of matrices with eigenvalues (batch, n).

    In the eigenbasis of B the steps are scalar: b_i <- b_i (3 - b_i^2)/2 and
    c_ij <- (3 - b_i^2 + b_i b_j - b_j^2) c_ij/2. Exactly it would be 1/(b_i + b_j) for the B at the start.
    """
    nu = torch.linalg.vector_norm(values, dim=-1, keepdim=True).sqrt()
    b = values.sqrt() / nu
    c = (1 / nu)[..., None].expand(*b.shape, b.shape[-1])
    for _ in range(iterations):
        i, j = b[..., :, None], b[..., None, :]
        c = 0.5 * c * (3 - i * i + i * j - j * j)
        b = 0.5 * b * (3 - b * b)
    return 0.5 * c


def _rounding(method: Method | None, values: Tensor) -> float:
    return max(ROUNDING, DECOMPOSED * values.shape[-1]) if isinstance(method, Eigen) else ROUNDING


def _condition(values: Tensor) -> float:
    least = values[..., 0].clamp_min(0)
    return (values[..., -1] / least).max().item()
