"""The Frechet distance against other formulas for it, and where those fail."""

import math

import hypothesis.strategies as st
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings

from matroot import count_operations, metrics
from matroot.metrics import frechet_distance, frechet_distance_of_samples

from .matrices import orthogonal, random_like, wishart, with_eigenvalues
from .operations import Largest

D = 6


def pair(d=D, batch=(), samples=None):
    """Two means and two covariances."""
    cov1, cov2 = wishart(*batch, d, samples=samples), 2 * wishart(*batch, d, samples=samples, seed=1)
    return random_like(cov1[..., 0]), cov1, random_like(cov2[..., 0], 2), cov2


def by_scipy(mu1, cov1, mu2, cov2):
    root = scipy.linalg.sqrtm((cov1 @ cov2).numpy())
    return float((mu1 - mu2).square().sum() + cov1.trace() + cov2.trace() - 2 * root.trace().real)


def by_eigenvalues(mu1, cov1, mu2, cov2):
    """The formula of torchmetrics."""
    roots = torch.linalg.eigvals(cov1 @ cov2).sqrt().real.sum(-1)
    traces = (cov1 + cov2).diagonal(dim1=-2, dim2=-1).sum(-1)
    return (mu1 - mu2).square().sum(-1) + traces - 2 * roots


@pytest.mark.parametrize("formula", [by_scipy, by_eigenvalues])
@pytest.mark.parametrize("d", [1, 2, 10, 64])
def test_is_what_others_compute(d, formula):
    """Their own rounding is that of a Schur form of the product: well below 1e-9."""
    given = pair(d)
    assert frechet_distance(*given).item() == pytest.approx(float(formula(*given)), rel=1e-9)
    # float32 input is exact input, and float32 output is rounded once
    narrow = [t.float() for t in given]
    expected = float(formula(*(t.double() for t in narrow)))
    assert frechet_distance(*narrow).item() == pytest.approx(expected, rel=2 * torch.finfo(torch.float32).eps)


def test_batches_broadcast():
    mu1, cov1, mu2, cov2 = pair(batch=(2, 3))
    found = frechet_distance(mu1, cov1, mu2[:, :1], cov2[0, 0])
    assert found.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            one = frechet_distance(mu1[i, j], cov1[i, j], mu2[i, 0], cov2[0, 0])
            assert one.item() == pytest.approx(found[i, j].item(), rel=1e-12)


# none so small that rounding the matrix would leave it without digits
eigenvalues = st.just(0.0) | st.floats(1e-100, 4)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(0, 99), st.lists(eigenvalues, min_size=8, max_size=8))
def test_commuting_covariances(d, seed, numbers):
    """For one eigenbasis: sum (sqrt(a) - sqrt(b))^2, for any zeros among them."""
    a = torch.tensor(numbers[:d], dtype=torch.float64)
    b = torch.tensor(numbers[::-1][:d], dtype=torch.float64)
    mean = torch.zeros(d, dtype=torch.float64)
    found = frechet_distance(mean, with_eigenvalues(a, seed), mean, with_eigenvalues(b, seed))
    # a zero eigenvalue is eps after rounding, and its root is multiplied by one of size 2
    assert found.item() == pytest.approx((a.sqrt() - b.sqrt()).square().sum().item(), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([torch.float32, torch.float64]), st.integers(0, 99))
def test_is_a_distance(d, samples, dtype, seed):
    """Not negative, zero to itself, symmetric, the same in every basis; rank 1 to full."""
    cov1, cov2 = wishart(d, samples=samples, seed=seed).to(dtype), wishart(d, samples=3, seed=seed + 1).to(dtype)
    mu1, mu2 = random_like(cov1[0], seed), random_like(cov1[0], seed + 1)
    found = frechet_distance(mu1, cov1, mu2, cov2)
    scale = (cov1.trace() + cov2.trace()).item()
    # the root of an eigenvalue lost in rounding
    tolerance = scale * d * torch.finfo(dtype).eps ** 0.5
    assert found.dtype == dtype
    assert found >= 0
    assert 0 <= frechet_distance(mu1, cov1, mu1, cov1) < 1e-12 * scale
    assert frechet_distance(mu2, cov2, mu1, cov1).item() == pytest.approx(found.item(), abs=tolerance)
    Q = orthogonal(d, seed).to(dtype)
    rotated = frechet_distance(mu1 @ Q, Q.mT @ cov1 @ Q, mu2 @ Q, Q.mT @ cov2 @ Q)
    assert rotated.item() == pytest.approx(found.item(), abs=tolerance + 1e-5 * float(found))


def test_singular_covariances_are_exact():
    """Where the usual formula takes the root of a product that is zero or defective."""
    zero, mean = torch.zeros(3, 3).double(), torch.zeros(3).double()
    first, second = torch.diag(torch.tensor([4.0, 0, 0])).double(), torch.diag(torch.tensor([0, 9.0, 0])).double()
    eye = torch.eye(3).double()
    for a, b, true in (
        (zero, zero, 0),
        (zero, eye, 3),
        (first, first, 0),
        (first, second, 13),
        (first, eye, 1 + 2),
    ):
        assert frechet_distance(mean, a, mean, b).item() == pytest.approx(true, abs=1e-14)


def test_many_singular_covariances_are_exact():
    """Whatever method is fastest here: one with errors of sqrt(eps) per eigenvalue would be off by 1e-6."""
    half = torch.diag(torch.cat([torch.ones(32), torch.zeros(32)])).double().expand(8, 64, 64)
    mean, eye = torch.zeros(8, 64).double(), torch.eye(64).double()
    torch.testing.assert_close(
        frechet_distance(mean, half, mean, eye), torch.full((8,), 32.0).double(), atol=1e-12, rtol=0
    )


def test_orthogonal_ranges_are_not_nan():
    """Their product is rounding of either sign; a root of it would refuse that."""
    Q = orthogonal(8, 0)
    a, b = Q[:, :4] @ Q[:, :4].mT, 3 * Q[:, 4:] @ Q[:, 4:].mT
    for dtype in (torch.float32, torch.float64):
        mean = torch.zeros(8, dtype=dtype)
        found = frechet_distance(mean, a.to(dtype), mean, b.to(dtype)).item()
        assert found == pytest.approx(16, rel=10 * torch.finfo(dtype).eps ** 0.5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rounded_covariances_are_not_nan(dtype):
    """Rank 3 of 20, rounded: eigenvalues of -eps, which float64 would call negative."""
    cov1, cov2 = (wishart(20, samples=3, seed=seed).to(dtype) for seed in (0, 1))
    mean = torch.zeros(20, dtype=dtype)
    exact = frechet_distance(
        *(t.double() for t in (mean, wishart(20, samples=3), mean, wishart(20, samples=3, seed=1)))
    )
    assert torch.linalg.eigvalsh(cov1.double()).min() < -10 * torch.finfo(torch.float64).eps
    found = frechet_distance(mean, cov1, mean, cov2)
    assert found.dtype == torch.float32
    # seventeen roots of eps in each
    scale = (cov1.double().trace() + cov2.double().trace()).item()
    assert found.item() == pytest.approx(exact.item(), abs=scale * torch.finfo(dtype).eps ** 0.5)


def test_one_bad_matrix_spoils_one_distance():
    mu1, cov1, mu2, cov2 = pair(batch=(5,))
    cov1[1, 0, 0] = math.nan
    cov2[2, 3, 3] = math.inf
    cov1[3] = torch.diag(torch.tensor([1.0, 1, 1, 1, 1, -0.1]))
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        found = frechet_distance(*(t.to(dtype) for t in (mu1, cov1, mu2, cov2)))
        assert found.isnan().tolist() == [False, True, True, True, False]


# --- gradients -----------------------------------------------------------------------------------


def test_gradcheck():
    """Also of what is not symmetric: the symmetric part counts."""
    mu1, cov1, mu2, cov2 = pair(4, batch=(2,))
    skew = random_like(cov1)
    given = [t.requires_grad_() for t in (mu1, cov1 + 0.1 * (skew - skew.mT), mu2, cov2)]
    assert torch.autograd.gradcheck(frechet_distance, given)


def test_gradient_vanishes_at_the_minimum():
    mu, cov, _, _ = pair()
    mu1, cov1 = mu.clone().requires_grad_(), cov.clone().requires_grad_()
    for gradient in torch.autograd.grad(frechet_distance(mu1, cov1, mu, cov), (mu1, cov1)):
        assert gradient.abs().max() < 1e-10


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_at_the_same_singular_covariance(rank, dtype):
    """Zero inside the range; outside, where the other has nothing, what is added counts in full."""
    values = torch.zeros(D).double()
    values[:rank] = torch.tensor([3.0, 2.0, 1.0])[:rank]
    cov = torch.diag(values).to(dtype)
    mean, variable = torch.zeros(D, dtype=dtype), cov.clone().requires_grad_()
    (found,) = torch.autograd.grad(frechet_distance(mean, variable, mean, cov), variable)
    expected = torch.diag((values == 0).to(dtype))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("samples", [1, 3])
def test_gradient_at_singular_covariances_is_finite(samples):
    given = [t.requires_grad_() for t in pair(D, batch=(3,), samples=samples)]
    for gradient in torch.autograd.grad(frechet_distance(*given).sum(), given):
        assert torch.isfinite(gradient).all()


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n1", "n2"), [(3, 4), (2, 2), (30, 40), (3, 40)])
def test_samples(n1, n2):
    """From covariances, and from few samples without them."""
    generator = torch.Generator().manual_seed(0)
    x1, x2 = (torch.randn(2, n, D, dtype=torch.float64, generator=generator) for n in (n1, n2))
    statistics = [part for x in (x1, x2) for part in (x.mean(1), torch.stack([torch.cov(one.T) for one in x]))]
    found = frechet_distance_of_samples(x1, x2)
    # roots of eigenvalues that are zero: sqrt(eps)
    torch.testing.assert_close(found, frechet_distance(*statistics), rtol=0, atol=1e-6)
    assert frechet_distance_of_samples(x1.float(), x2).dtype == torch.float64
    assert frechet_distance_of_samples(x1.half(), x2.half()).dtype == torch.float32


@pytest.mark.parametrize(("n1", "n2"), [(3, 4), (12, 9)])
def test_samples_gradcheck(n1, n2):
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(n, 5, dtype=torch.float64, generator=generator).requires_grad_() for n in (n1, n2)]
    assert torch.autograd.gradcheck(frechet_distance_of_samples, given)


@pytest.mark.parametrize(("n", "d"), [(300, 4), (4, 300)])
def test_samples_or_features_whichever_are_fewer(n, d):
    """Neither a matrix of all pairs of many samples nor one of many features."""
    x = torch.randn(n, d)
    with Largest() as recorded:
        frechet_distance_of_samples(x, x + 1)
    assert recorded.size == n * d


def test_no_features():
    """Nothing differs in nothing."""
    mean, cov = torch.zeros(3, 0), torch.zeros(3, 0, 0)
    assert torch.equal(frechet_distance(mean, cov, mean, cov), torch.zeros(3))
    assert frechet_distance_of_samples(torch.zeros(4, 0), torch.zeros(5, 0)) == 0


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_samples(count):
    """A point has no covariance."""
    few, enough = torch.ones(count, 3), torch.zeros(2, 3)
    with pytest.raises(ValueError, match=f"x1 must hold at least 2 samples, .* got {count}"):
        frechet_distance_of_samples(few, enough)
    with pytest.raises(ValueError, match=f"x2 must hold at least 2 samples, .* got {count}"):
        frechet_distance_of_samples(enough, few)
    assert frechet_distance_of_samples(enough, enough + 1) == 3


# --- the rest ------------------------------------------------------------------------------------


def test_compile():
    torch._dynamo.reset()
    given = [t.float() for t in pair(batch=(2,))]
    compiled = torch.compile(frechet_distance, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given), frechet_distance(*given))


def test_autocast_changes_nothing():
    given = [t.float() for t in pair()]
    expected = frechet_distance(*given)
    with torch.autocast("cpu", torch.bfloat16):
        found = frechet_distance(*given)
    # computed in float64, rounded once
    torch.testing.assert_close(found, expected, rtol=2 * torch.finfo(torch.float32).eps, atol=0)


def test_refuses():
    with pytest.raises(TypeError, match=r"x1 must be a torch\.Tensor, got ndarray"):
        frechet_distance_of_samples(torch.zeros(4, 3).numpy(), torch.zeros(4, 3))
    mu, cov = torch.zeros(2, 3), torch.zeros(2, 3, 3)
    with pytest.raises(ValueError, match=r"cov2 must have shape \(\*, 3, 3\) to go with mu1, got \(2, 4, 4\)"):
        frechet_distance(mu, cov, mu, torch.zeros(2, 4, 4))
    with pytest.raises(ValueError, match=r"mu2 must have shape \(\*, 3\) to go with mu1, got \(5,\)"):
        frechet_distance(mu, cov, torch.zeros(5), cov)
    with pytest.raises(ValueError, match=r"cov1 must have shape \(\*, 3, 3\) to go with mu1, got \(3,\)"):
        frechet_distance(mu, torch.zeros(3), mu, cov)
    with pytest.raises(TypeError, match=r"cov1 must be real floating point, got torch\.int64"):
        frechet_distance(mu, cov.long(), mu, cov)
    with pytest.raises(ValueError, match=r"x2 must have shape \(\*, N, 3\) to go with x1, got \(2, 4\)"):
        frechet_distance_of_samples(mu, torch.zeros(2, 4))
    with pytest.raises(TypeError, match="x1 must be real floating point"):
        frechet_distance_of_samples(mu.long(), mu)


@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (2, 6, 6)])
def test_trace_norm_by_products(shape):
    """What a GPU computes: the same value and gradient as by singular values."""
    K = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4)).requires_grad_()
    by_products, by_values = metrics._PolarTraceNorm.apply(K)[0], torch.linalg.svdvals(K).sum(-1)
    torch.testing.assert_close(by_products, by_values)
    weights = torch.arange(1.0, 1 + by_values.numel(), dtype=torch.float64).view_as(by_values)
    gradients = [
        torch.autograd.grad((value * weights).sum(), K, create_graph=True)[0] for value in (by_products, by_values)
    ]
    torch.testing.assert_close(*gradients)
    second = [torch.autograd.grad((gradient * K.detach() ** 2).sum(), K)[0] for gradient in gradients]
    torch.testing.assert_close(*second)


@pytest.mark.parametrize("samples", [(20, 16), (60, 40)])
def test_regular_covariances_are_not_decomposed(samples):
    x1, x2 = (random_like(wishart(n)[:, :8], n) for n in samples)
    with count_operations() as counts:
        found = frechet_distance_of_samples(x1, x2)
    assert (counts.decompositions, counts.factorizations) == (0, 2)
    expected = by_scipy(x1.mean(0), torch.cov(x1.mT), x2.mean(0), torch.cov(x2.mT))
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_samples_of_a_singular_covariance_are_taken_themselves():
    """More samples than features, but not three times as many, of which one is constant: one decomposition, the other
    set's."""
    x1, x2 = (random_like(wishart(n)[:, :8], n) for n in (16, 20))
    x1[:, 3] = x2[:, 5] = 1.0
    with count_operations() as counts:
        found = frechet_distance_of_samples(x1, x2)
    assert counts.decompositions == 1
    true = torch.linalg.svdvals((x1 - x1.mean(0)) @ (x2 - x2.mean(0)).mT / (15 * 19) ** 0.5).sum()
    spread = (x1.mean(0) - x2.mean(0)).square().sum() + torch.cov(x1.mT).trace() + torch.cov(x2.mT).trace()
    assert found.item() == pytest.approx((spread - 2 * true).item(), rel=1e-7)  # root of an eigenvalue of eps


@pytest.mark.parametrize("smallest", [1e-2, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12])
def test_nearly_singular_covariances(smallest):
    """Value and gradient where one eigenvalue is small, by Cholesky's factors or roots: for one eigenbasis
    sum (sqrt(a) - sqrt(b))^2 and 1 - sqrt(b/a), up to the rounding of the matrix, eps/a relative to a."""
    a, b = torch.rand(2, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.5
    a[2] = smallest
    Q, mean = orthogonal(D, 3), torch.zeros(D, dtype=torch.float64)
    cov1, cov2 = ((Q * values) @ Q.mT for values in (a, b))
    found = frechet_distance(mean, cov1.requires_grad_(), mean, cov2)
    eps = 8 * torch.finfo(torch.float64).eps
    assert found.item() == pytest.approx((a.sqrt() - b.sqrt()).square().sum().item(), abs=D * eps / smallest**0.5)
    (gradient,) = torch.autograd.grad(found, cov1)
    expected = (Q * (1 - (b / a).sqrt())) @ Q.mT
    assert torch.linalg.matrix_norm(gradient - expected) < D * eps / smallest * torch.linalg.matrix_norm(expected)
