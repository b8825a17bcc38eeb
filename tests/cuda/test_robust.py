"""Matrices above n = 64 of any condition on a GPU, whose tensor cores truncate sums."""

import pytest
import torch

import matroot
from matroot.bench.problems import inverse_unit, root_unit, symmetric, with_spectrum

from ..bad_matrices import assert_harm_no_other
from ..matrices import (
    error,
    exact_gradient,
    exact_inverse_root,
    exact_root,
    orthogonal,
    spectrum,
    wishart,
    with_eigenvalues,
)
from .graphs import assert_graph_repeats

EPS = torch.finfo(torch.float32).eps
# On both sides of a whole tile, of the size from which tiles are large, and of sizes where they are not.
SIZES = (65, 66, 127, 128, 129, 192, 193, 256, 257, 320, 384, 385, 512, 513, 1000, 1025)
KINDS = ("log", "uniform", "clustered", "one-small", "one-large")
# In units of u (sqrt(n) + sqrt(kappa)) for roots, u (sqrt(n) + kappa) for inverse roots and gradients.
ROOT, INVERSE, GRADIENT = 4.0, 6.0, 12.0


def roots(A, **options):
    return matroot.roots(A, **options)


def sqrtm(A, **options):
    return matroot.sqrtm(A, **options)


def matrices(kind, n, condition):
    if kind != "uniform":
        return with_spectrum(kind, 1, n, condition, device="cuda").float()
    return with_eigenvalues(torch.linspace(1, 1 / condition, n, dtype=torch.float64), 0, torch.float32)[None].cuda()


def assert_accurate(A, condition):
    n = A.shape[-1]
    GS, GR = (symmetric(1, n, seed=seed, device="cuda").float().expand_as(A) for seed in (1, 2))
    X = A.clone().requires_grad_()
    S, R = roots(X)
    from_S, from_R = (
        torch.autograd.grad(T, X, G, retain_graph=True)[0] for T, G in ((S, GS), (R, GR))
    )  # fmt: skip
    (from_both,) = torch.autograd.grad((S, R), X, (GS, GR))
    of_S, of_R = exact_gradient(A, GS), exact_gradient(A, GR, inverse=True)
    assert error(S.detach(), exact_root(A)) <= ROOT * root_unit(n, condition, EPS)
    assert error(R.detach(), exact_inverse_root(A)) <= INVERSE * inverse_unit(n, condition, EPS)
    for found, true in ((from_S, of_S), (from_R, of_R), (from_both, of_S + of_R)):
        assert error(found, true) <= GRADIENT * inverse_unit(n, condition, EPS)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n):
    """Well-conditioned covariances, and a spectrum of condition 1e4."""
    A = wishart(1, n, samples=2 * n + 4, dtype=torch.float32).cuda()
    assert_accurate(A, 50.0)
    assert_accurate(matrices("log", n, 1e4), 1e4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", [10.0, 1e2, 1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("n", [100, 256])
def test_any_condition(kind, condition, n):
    assert_accurate(matrices(kind, n, condition), condition)


@pytest.mark.parametrize("n", [2048, 3001])
def test_large_matrices(n):
    assert_accurate(wishart(1, n, samples=2 * n, dtype=torch.float32).cuda(), 50.0)


@pytest.mark.parametrize("n", [100, 256, 1024])
@pytest.mark.parametrize("condition", [10.0, 1e3])
def test_singular_matrices_are_not_shifted(n, condition):
    A = with_spectrum("low-rank", 3, n, condition, device="cuda").float()
    S, R = roots(A)
    assert torch.isfinite(R).all()
    assert error(S, exact_root(A)) <= 3e-4


@pytest.mark.parametrize("n", [65, 100, 128, 200, 300])
@pytest.mark.parametrize("batch", [16, 256])
def test_covariances_of_dead_channels_have_finite_gradients(n, batch):
    """Of features that are never negative, half of whose channels are zero: rounding makes some eigenvalues of zero
    negative. Inverse roots have none that are.
    """
    generator = torch.Generator("cuda").manual_seed(n)
    X = torch.randn(batch, n, 3 * n // 2, generator=generator, device="cuda")
    X *= 10 ** torch.linspace(0, -4, n, device="cuda")[:, None]
    X = (X - 0.5 * X.std((1, 2), keepdim=True)).relu()
    X *= torch.rand(batch, n, 1, generator=generator, device="cuda") < 0.5
    X -= X.mean(-1, keepdim=True)
    A = (X @ X.mT / X.shape[-1]).requires_grad_()
    S, R = roots(A)
    assert error(S.detach(), exact_root(A.detach().cpu()).cuda()) < 3e-4
    assert torch.linalg.eigvalsh(R.detach().double()).min() > 0
    for T in (S, R):
        (gradient,) = torch.autograd.grad(T.sum(), A, retain_graph=True)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("n", [100, 300])
def test_negative_by_rounding(n):
    """Down to -4 n eps of the largest eigenvalue zero, below that without a root."""
    U = orthogonal(n, 0)
    values = spectrum("log", n, 1e2).repeat(3, 1)
    values[:, -1] = torch.tensor([-EPS, -n * EPS, -100 * n * EPS])
    A = ((U * values[:, None, :]) @ U.mT).float().cuda()
    S = sqrtm(A)
    assert error(S[:2], exact_root(A[:2])) < 0.5 * (n * EPS) ** 0.5
    assert torch.isnan(S[2]).all()


@pytest.mark.parametrize("n", [65, 200])
def test_bad_matrices_affect_no_other(n):
    def results(A):
        X = A.clone().requires_grad_()
        S = sqrtm(X)
        return S.detach(), *torch.autograd.grad(S, X, torch.ones_like(S))

    assert_harm_no_other(wishart(40, n, dtype=torch.float32).cuda(), (3, 20, 21, 39), results)


@pytest.mark.parametrize(("n", "times"), [(65, 4), (130, 25), (256, 25)])
def test_results_do_not_depend_on_the_batch(n, times):
    """Hard and singular matrices, repeated; each alone; bit for bit. Large batches of small ones take other kernels."""
    kinds = (("log", 1e4), ("one-small", 1e6), ("low-rank", 1e3))
    few = torch.cat([with_spectrum(kind, 1, n, condition, device="cuda") for kind, condition in kinds]).float()
    G = symmetric(1, n, device="cuda").float()

    def results(A):
        X = A.clone().requires_grad_()
        S, R = roots(X)
        return S.detach(), R.detach(), torch.autograd.grad((S, R), X, (G.expand_as(A),) * 2)[0]

    many = results(few.repeat(times, 1, 1))
    for k in range(len(few)):
        for alone, among in zip(results(few[k : k + 1]), many, strict=True):
            assert torch.equal(alone.expand(times, n, n), among[k :: len(few)])
    for T in many:
        assert torch.equal(T, T.mT)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scales(scale):
    A = wishart(2, 100).cuda()
    S, R = roots((A * scale).float())
    assert error(S, exact_root(A) * scale**0.5) < 1e-6
    assert error(R, exact_inverse_root(A) * scale**-0.5) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_strides_and_ridge(dtype):
    A = wishart(3, 90, dtype=torch.float32).to(dtype).cuda()
    X = A.permute(1, 2, 0).contiguous().permute(2, 0, 1).requires_grad_()
    S = sqrtm(X, ridge=0.1)
    (gradient,) = torch.autograd.grad(S.float().sum(), X)
    wide = A.double()
    eye = torch.eye(90, dtype=torch.float64, device="cuda")
    full = wide + 0.1 * wide.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    assert S.dtype == gradient.dtype == dtype
    assert error(S.detach().float(), exact_root(full)) < 4 * torch.finfo(dtype).eps
    true = exact_gradient(full, torch.ones_like(full))
    true = true + 0.1 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    assert error(gradient.float(), true) < 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("n", [100, 256])
def test_a_graph_repeats_bit_for_bit(n):
    """Of matrices that take different steps."""
    A = torch.cat([with_spectrum("log", 4, n, condition, device="cuda") for condition in (4.0, 1e4)]).float()
    A.requires_grad_()

    def step():
        return torch.autograd.grad(matroot.invsqrtm(A).sum(), A)

    assert_graph_repeats(step, step())
