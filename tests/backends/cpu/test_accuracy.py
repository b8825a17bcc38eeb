"""Float32 on the CPU against float64 decompositions: random matrices of all kinds, singular ones, large ones."""

import math

import pytest
import torch

import matroot
from matroot.bench.problems import normal, relative_errors

from ...installation import needs_compiled_code
from ...matrices import (
    apply,
    error,
    exact_gradient,
    exact_inverse_root,
    exact_root,
    random_like,
    spectrum,
    wishart,
    with_eigenvalues,
)

U = 2.0**-24
"""The unit roundoff of float32."""
KINDS = ("log", "clustered", "one-small", "one-large", "log-uniform", "uniform", "few-small")


def eigenvalues(kind, n, kappa, generator):
    """Eigenvalues from about 1/kappa to about 1."""
    if kind == "log-uniform":
        return kappa ** -torch.rand(n, dtype=torch.float64, generator=generator)
    if kind == "uniform":
        return 1 / kappa + (1 - 1 / kappa) * torch.rand(n, dtype=torch.float64, generator=generator)
    if kind == "few-small":
        values = torch.ones(n, dtype=torch.float64)
        values[: -(-n // 8)] = 1 / kappa
        return values
    return spectrum(kind, n, kappa)


def random_matrix(n, seed):
    """A float32 matrix of random kind and condition number, 1 to 1e7, and that number as rounding left it."""
    generator = torch.Generator().manual_seed(seed)
    kappa = 10 ** (7 * torch.rand((), generator=generator).item())
    A = with_eigenvalues(eigenvalues(KINDS[seed % len(KINDS)], n, kappa, generator), seed).float()
    values = torch.linalg.eigvalsh(A.double())
    return A, (values[-1] / values[0]).item()


SIZES = [1 + seed % 40 for seed in range(360)] + [47, 64, 65, 96, 100, 128, 130, 161, 200, 256]


@needs_compiled_code
@pytest.mark.parametrize("part", range(10))
def test_random_matrices(part):
    """Root within 4 u (sqrt(n) + sqrt(kappa)), inverse root and gradients within 6 u (sqrt(n) + kappa).

    A backward stable root has errors of u sqrt(kappa) and u kappa; sqrt(n) stands for the rounding of products.
    """
    checked = 0
    for seed in range(part, len(SIZES), 10):
        n = SIZES[seed]
        A, kappa = random_matrix(n, seed)
        if not 0 < kappa < 2e7:  # rounding to float32 made it singular
            continue
        checked += 1
        X, G = A[None].clone().requires_grad_(), random_like(A[None])
        S, R = matroot.roots(X, backend="compiled")
        allowed = 6 * U * (math.sqrt(n) + kappa)
        assert error(S.detach(), exact_root(A[None])) < 4 * U * (math.sqrt(n) + math.sqrt(kappa)), (seed, kappa)
        assert error(R.detach(), exact_inverse_root(A[None])) < allowed, (seed, kappa)
        for root, inverse in ((S, False), (R, True)):
            (gradient,) = torch.autograd.grad(root, X, G, retain_graph=True)
            assert error(gradient, exact_gradient(X.detach(), G, inverse)) < allowed, (seed, kappa, inverse)
    assert checked > 30


@needs_compiled_code
@pytest.mark.parametrize("n", [16, 64, 200])
def test_roots_of_singular_matrices(n):
    """As near as float32 ``eigh``, whose errors in zero eigenvalues are a few u: within 3e-4."""
    A = torch.cat([wishart(3, n, samples=n // 2), with_eigenvalues(spectrum("low-rank", n, 1e4))[None]]).float()
    S, R = matroot.roots(A, backend="compiled")
    assert error(S, exact_root(A)) < 3e-4
    assert torch.isfinite(R).all()


@needs_compiled_code
@pytest.mark.parametrize(("n", "rank"), [(16, 5), (64, 20)])
def test_singular_matrices_are_shifted_in_the_inverse_root(n, rank):
    """R = (A + sigma I)^(-1/2) and S = A (A + sigma I)^(-1/2) with sigma = 4 eps theta.

    On the range of A the gradient is that of (A + sigma I)^(1/2), but for the share of sigma in its eigenvalues.
    A is rounded by about u theta/4 at most, which moves sigma by a sixteenth, and R by half of that.
    """
    A = wishart(2, n, samples=rank).float()
    values, vectors = torch.linalg.eigh(A.double())
    m2, m4 = values.square().mean(-1), values.pow(4).mean(-1)
    theta = 1.02 * (m2 + ((n - 1) * (m4 - m2.square())).sqrt()).sqrt()
    sigma = (8 * U * theta)[:, None, None]
    X = A.clone().requires_grad_()
    S, R = matroot.roots(X, backend="compiled")
    eye = torch.eye(n, dtype=torch.float64)
    assert error(R.detach(), exact_inverse_root(A.double() + sigma * eye)) < 1 / 16
    assert error(S.detach(), apply(lambda v: v / (v + sigma[..., 0]).sqrt(), A)) < 4 * U * 64**0.5
    G, rest = random_like(A), vectors[..., n - rank :]
    (gradient,) = torch.autograd.grad(S, X, G)
    true = exact_gradient(A.double() + sigma * eye, G)
    assert error(rest.mT @ gradient.double() @ rest, rest.mT @ true @ rest) < 1e-3


@pytest.mark.parametrize("kind", ["log", "one-small", "one-large"])
def test_ill_conditioned_decompositions(kind):
    """Eigenvalues of float64, rounded: what remains is the rounding of products in float32, whatever kappa is."""
    A = torch.stack([with_eigenvalues(spectrum(kind, 48, kappa)) for kappa in (10.0, 1e4, 1e6)]).float()
    X, G = A.clone().requires_grad_(), random_like(A)
    S, R = matroot.roots(X, "eigen", backend="lapack")
    tolerance = 10 * U * math.sqrt(48)
    for root, true, inverse in ((S, exact_root(A), False), (R, exact_inverse_root(A), True)):
        assert error(root.detach(), true) < tolerance
        (gradient,) = torch.autograd.grad(root, X, G, retain_graph=True)
        assert error(gradient, exact_gradient(A, G, inverse)) < tolerance


@pytest.mark.parametrize("exponent", [-50, -38, -16, 14, 60])
def test_ill_conditioned_decompositions_at_any_scale(exponent):
    """As above: up to the ends of the range matrices are not left to decompositions in float32."""
    scale = 4.0**exponent
    A, G = with_eigenvalues(spectrum("log", 48, 1e5)).float()[None], random_like(wishart(1, 48)).float()
    X = (scale * A).requires_grad_()
    root, inverse = matroot.sqrtm(X, "eigen", backend="lapack"), matroot.invsqrtm(X, "eigen", backend="lapack")
    tolerance = 10 * U * math.sqrt(48)
    assert error(root.detach() / scale**0.5, exact_root(A)) < tolerance
    assert error(inverse.detach() * scale**0.5, exact_inverse_root(A)) < tolerance
    (gradient,) = torch.autograd.grad(root, X, G)
    assert error(gradient * scale**0.5, exact_gradient(A, G)) < tolerance


@pytest.mark.parametrize("n", [3, 80])
def test_ill_conditioned_complex_matrices(n):
    """Those of condition 1e5 are decomposed in float64, the other one of the batch in float32."""
    A = torch.stack([with_eigenvalues(spectrum("log", n, k), dtype=torch.complex128) for k in (10, 1e5, 1e5)])
    A = A.to(torch.complex64)
    X, G = A.clone().requires_grad_(), random_like(A)
    S, R = matroot.roots(X, "eigen")
    tolerance = 40 * U * math.sqrt(n)
    for root, true, inverse in ((S, exact_root(A), False), (R, exact_inverse_root(A), True)):
        (gradient,) = torch.autograd.grad(root, X, G, retain_graph=True)
        exact = exact_gradient(A, G, inverse)
        for k in range(3):
            assert error(root[k].detach(), true[k]) < tolerance
            assert error(gradient[k], exact[k]) < tolerance


def with_one_small(directions, condition):
    """Symmetric (k, n, n) whose eigenvalues are one, but for 1/condition of the directions (k, n)."""
    u = directions / torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return torch.eye(u.shape[-1], dtype=u.dtype) - (1 - 1 / condition) * u[:, :, None] * u[:, None, :]


def inverse_units(A, condition):
    """Errors of the inverse roots in units of u (sqrt(n) + condition)."""
    R = matroot.invsqrtm(A, backend="compiled")
    return relative_errors(R, exact_inverse_root(A)) / (U * (A.shape[-1] ** 0.5 + condition))


@needs_compiled_code
@pytest.mark.parametrize("n", [2, 8, 33, 160, 300])
@pytest.mark.parametrize("condition", [1.75, 4.8, 5.0, 5.2, 5.5, 49.0, 52.0, 195.0, 203.0, 210.0])
def test_one_small_eigenvalue_near_the_ends_of_schedules(n, condition):
    """A schedule that is a little too short spoils one eigenvalue of many: norms of whole matrices hardly show it."""
    A = with_one_small(normal(8, n, seed=n), condition).float()
    assert inverse_units(A, condition).max() < 4


@needs_compiled_code
@pytest.mark.parametrize("condition", [4.9, 5.1, 5.3])
def test_a_small_eigenvalue_that_the_estimate_of_the_condition_number_misses(condition):
    """Its eigenvector is orthogonal to the vector from which inverse iterations start."""
    start = torch.tensor([1.0 if i * 2654435761 % 2**32 >> 16 & 1 else -1.0 for i in range(32)], dtype=torch.float64)
    directions = normal(20, 32, seed=0)
    directions -= (directions @ start / 32)[:, None] * start
    A = with_one_small(directions, condition).float()
    assert inverse_units(A, condition).max() < 4
