"""The kernels on chip for matrices above n = 64, which take what is spilled, under Triton's interpreter."""

import pytest
import torch

from matroot.backends.triton.tiled import launch as tiled
from matroot.bench.problems import symmetric, with_spectrum

from ..bad_matrices import assert_harm_no_other, without_root
from ..matrices import error, exact_gradient, exact_root, wishart
from .test_on_chip import EPS, assert_accurate, assert_rounding, at_the_ends_of_the_range, roots, solve

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # of NaN and Inf, on purpose


@pytest.fixture(autouse=True)
def no_matrix_is_deferred(monkeypatch):
    monkeypatch.setattr(tiled, "robust", None)


@pytest.mark.parametrize("n", [65, 80, 96, 127, 128])
def test_well_conditioned(n):
    assert_accurate(wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float())


@pytest.mark.parametrize(
    ("n", "kind", "condition"),
    [
        (65, "log", 1e2),
        (66, "log", 1e6),
        (96, "log", 1e4),
        (80, "clustered", 1e5),
        (96, "one-small", 1e4),
        (97, "one-large", 1e6),
        (128, "log", 1e5),
        (128, "one-large", 1e4),
    ],
)
def test_any_condition(n, kind, condition):
    assert_rounding(with_spectrum(kind, 1, n, condition).float(), condition, separately=n == 96)


@pytest.mark.parametrize("n", [65, 96])
@pytest.mark.parametrize("samples", [1.5, 1.1])
def test_moments_that_tell_little(n, samples):
    A = wishart(1, n, samples=int(samples * n)).float()
    values = torch.linalg.eigvalsh(A.double())
    assert_rounding(A, (values[:, -1] / values[:, 0]).max().item())


@pytest.mark.parametrize("n", [66, 96])
def test_singular_matrices(n):
    A = wishart(1, n, samples=n // 3).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 3e-4
    assert torch.isfinite(solve(S, R, symmetric(1, n).float(), None)).all()


def test_bad_matrices_harm_no_other():
    def results(A):
        S, R = roots(A)
        return S, R, solve(S, R, torch.ones_like(S), torch.ones_like(S))

    assert_harm_no_other(wishart(5, 67).float(), (1, 3, 2, 4), results)


@pytest.mark.parametrize("kind", ["indefinite", "slightly-indefinite"])
def test_indefinite_matrices_have_no_root(kind):
    for T in roots(without_root(kind, wishart(72, seed=1)).float()[None]):
        assert torch.isnan(T).all()


def test_ends_of_the_range():
    assert_accurate(*at_the_ends_of_the_range(65))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_strided_asymmetric_input_with_a_ridge(dtype):
    n = 81
    A, G = wishart(1, n), symmetric(1, n).float()
    skew = torch.randn(n, n, generator=torch.Generator().manual_seed(0))
    A = (A + skew - skew.mT).to(dtype).permute(1, 2, 0).contiguous().permute(2, 0, 1)
    full = 0.5 * (A.double() + A.double().mT)
    eye = torch.eye(n)
    full = full + 0.25 * full.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    S, R = roots(A, 0.25)
    assert error(S, exact_root(full)) < 8 * EPS
    true = exact_gradient(full, G)
    true = true + 0.25 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    assert error(solve(S, R, G, None, 0.25), true) < 32 * EPS
