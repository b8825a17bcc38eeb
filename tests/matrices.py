"""Test matrices with known spectra, and the exact answers for them."""

import torch
from torch import Tensor

import matroot
from matroot.bench.problems import spectrum


def orthogonal(n: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(n, n, dtype=dtype, generator=generator))[0]


def with_eigenvalues(values: Tensor, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """A Hermitian matrix with these eigenvalues in a random basis."""
    wide = torch.complex128 if dtype.is_complex else torch.float64
    U = orthogonal(values.shape[-1], seed, wide)
    A = (U * values.to(U.real.dtype)[..., None, :]) @ U.mH
    return (0.5 * (A + A.mH)).to(dtype)


def wishart(*shape: int, samples: int | None = None, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Sample covariances of standard normal data, shape (*shape[:-1], n, n), n = shape[-1]."""
    n = shape[-1]
    samples = 2 * n if samples is None else samples
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(*shape, samples, dtype=dtype, generator=generator)
    return X @ X.mH / samples


SPECTRA = ("log", "clustered", "one-small", "one-large", "low-rank")
CONDITIONS = (1.0, 1e2, 1e4, 1e6, 1e8)


def zoo(n: int, dtype: torch.dtype) -> Tensor:
    """Every kind of spectrum at every condition number, and Wishart matrices, as one batch."""
    made = [
        with_eigenvalues(spectrum(kind, n, kappa), seed)
        for seed, (kind, kappa) in enumerate((kind, kappa) for kind in SPECTRA for kappa in CONDITIONS)
    ]
    made += [wishart(n, samples=samples, seed=samples) for samples in (2 * n, n + 3)]
    return torch.stack(made).to(dtype)


def apply(function, A: Tensor) -> Tensor:
    """U function(eigenvalues, A) U^H in double precision."""
    wide = A.to(torch.complex128 if A.is_complex() else torch.float64)
    values, U = torch.linalg.eigh(0.5 * (wide + wide.mH))
    return (U * function(values)[..., None, :]) @ U.mH


def exact_root(A: Tensor) -> Tensor:
    return apply(lambda values: values.clamp_min(0).sqrt(), A)


def exact_inverse_root(A: Tensor) -> Tensor:
    return apply(torch.rsqrt, A)


def exact_gradient(A: Tensor, G: Tensor, inverse: bool = False) -> Tensor:
    """Gradient of <G, A^(+-1/2)> by A, in double precision."""
    wide = A.to(torch.complex128 if A.is_complex() else torch.float64)
    values, U = torch.linalg.eigh(0.5 * (wide + wide.mH))
    s = values.sqrt()
    i, j = s[..., :, None], s[..., None, :]
    weights = -1 / (i * j * (i + j)) if inverse else 1 / (i + j)
    G = G.to(U.dtype)
    return U @ (weights * (U.mH @ (0.5 * (G + G.mH)) @ U)) @ U.mH


def random_like(A: Tensor, seed: int = 1) -> Tensor:
    return torch.randn(A.shape, dtype=A.dtype, generator=torch.Generator().manual_seed(seed))


def error(found: Tensor, true: Tensor) -> float:
    """Largest relative Frobenius error over the batch."""
    difference = torch.linalg.matrix_norm(found.to(true.dtype) - true)
    return (difference / torch.linalg.matrix_norm(true)).max().item()


FUNCTIONS = {
    "sqrtm": matroot.sqrtm,
    "invsqrtm": matroot.invsqrtm,
    "roots": lambda A, *args, **kwargs: sum(matroot.roots(A, *args, **kwargs)),
}
"""Each public function as one tensor-valued function of A."""
