"""Minimax roots and gradients of one program per matrix, under Triton's interpreter."""

import pytest
import torch
import triton

from matroot.backends.triton import minimax
from matroot.bench.problems import SPECTRA, inverse_unit, root_unit, symmetric, with_spectrum
from matroot.methods.minimax import kernel_schedules

from ..bad_matrices import assert_harm_no_other, without_root
from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, wishart, with_eigenvalues

EPS = torch.finfo(torch.float32).eps
# In units of u (sqrt(n) + sqrt(kappa)) for roots, u (sqrt(n) + kappa) for inverse roots and gradients; the interpreter
# rounds sums, which tensor cores truncate.
MOST = {"root": 1.0, "inverse": 1.0, "gradient": 2.0}
# Diverging iterations of indefinite matrices overflow on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")


def roots(A, ridge=0.0):
    return minimax.roots(A, ridge, kernel_schedules)


def solve(S, R, GS, GR, ridge=0.0):
    return minimax.solve(S, R, GS, GR, ridge)


def assert_accurate(A, GS, GR):
    """Roots and gradients of well-conditioned matrices, to a few roundings a product."""
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS
    root, inverse = exact_gradient(A, GS), exact_gradient(A, GR, inverse=True)
    assert error(solve(S, R, GS, None), root) < 32 * EPS
    assert error(solve(S, R, None, GR), inverse) < 64 * EPS
    assert error(solve(S, R, GS, GR), root + inverse) < 64 * EPS


def assert_rounding(A, condition, separately=False):
    """Roots and the gradient of both together, or also those of each."""
    n = A.shape[-1]
    GS, GR = symmetric(len(A), n).float(), symmetric(len(A), n, seed=2).float()
    S, R = roots(A)
    unit = inverse_unit(n, condition, EPS)
    assert error(S, exact_root(A)) < MOST["root"] * root_unit(n, condition, EPS)
    assert error(R, exact_inverse_root(A)) < MOST["inverse"] * unit
    of_root, of_inverse = exact_gradient(A, GS), exact_gradient(A, GR, inverse=True)
    if separately:
        assert error(solve(S, R, GS, None), of_root) < MOST["gradient"] * unit
        assert error(solve(S, R, None, GR), of_inverse) < MOST["gradient"] * unit
    both = solve(S, R, GS, GR)
    sizes = torch.linalg.matrix_norm(of_root) + torch.linalg.matrix_norm(of_inverse)
    assert (torch.linalg.matrix_norm(both - of_root - of_inverse) / sizes).max() < MOST["gradient"] * unit
    for T in (S, R, both):
        assert torch.equal(T, T.mT)


def test_this_is_the_interpreter():
    assert triton.knobs.runtime.interpret


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 64])
def test_roots_and_gradients(n):
    A, GS, GR = wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float()
    assert_accurate(A, GS, GR)


@pytest.mark.parametrize("kind", [kind for kind in SPECTRA if kind not in ("wishart", "low-rank")])
@pytest.mark.parametrize(("n", "condition"), [(13, 81.0), (24, 1e2), (33, 450.0), (24, 1e4), (17, 1e6), (64, 1e6)])
def test_any_condition(kind, n, condition):
    assert_rounding(with_spectrum(kind, 1, n, condition).float(), condition, separately=n == 24)


@pytest.mark.parametrize("n", [6, 16, 48, 66])
@pytest.mark.parametrize("samples", [2, 1.5, 1.3])
def test_where_steps_become_more(n, samples):
    """Moments alone do not tell how many steps these take; above 64 they are deferred."""
    A, G = wishart(1, n, samples=int(samples * n)).float(), symmetric(1, n).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 20 * EPS
    assert error(R, exact_inverse_root(A)) < 40 * EPS
    assert error(solve(S, R, G, None), exact_gradient(A, G)) < 40 * EPS


@pytest.mark.parametrize("n", [6, 48])
@pytest.mark.parametrize("samples", [2, 1.2])
def test_moments_that_tell_little(n, samples):
    A = wishart(2, n, samples=int(samples * n)).float()
    values = torch.linalg.eigvalsh(A.double())
    assert_rounding(A, (values[:, -1] / values[:, 0]).max().item())


def test_bad_matrices_harm_no_other():
    def results(A):
        S, R = roots(A)
        return S, R, solve(S, R, torch.ones_like(S), torch.ones_like(S))

    assert_harm_no_other(wishart(5, 12).float(), (1, 3, 2, 4), results)


@pytest.mark.parametrize("kind", ["indefinite", "slightly-indefinite"])
def test_indefinite_matrices_have_no_root(kind):
    A = without_root(kind, wishart(16, seed=1)).float()[None]
    for T in roots(A):
        assert torch.isnan(T).all()


@pytest.mark.parametrize("n", [2, 13, 20, 48])
def test_singular_matrices(n):
    """Rounding the entries moves eigenvalues of zero to eps/4 or so, and their roots to the root of that."""
    data = wishart(2, n, samples=max(1, n // 3))
    A = data.float()
    S, R = roots(A)
    assert error(S, exact_root(data)) < 3e-4
    assert error(S, exact_root(A)) < 3e-4
    assert error(S @ R @ A, A.double()) < 0.02
    assert torch.isfinite(solve(S, R, symmetric(2, n).float(), None)).all()


@pytest.mark.parametrize("smallest", [-2e-7, -2e-6])
def test_negative_by_rounding(smallest):
    """Below 4 n eps: the root is that of an eigenvalue of zero but for the root of what was negative."""
    values = torch.linspace(1, 0.1, 12, dtype=torch.float64)
    values[-1] = smallest
    A = with_eigenvalues(values)[None]
    S, R = roots(A.float())
    assert error(S, exact_root(A)) < abs(smallest) ** 0.5
    assert torch.isfinite(R).all()


def test_scale():
    """Powers of four change the exponents, and nothing else, as long as no entry is subnormal."""
    A = torch.cat([wishart(1, 8), with_spectrum("log", 1, 8, 1e5)]).float()[:, None]
    powers = torch.tensor([-50.0, -20.0, 0.0, 20.0, 60.0])[:, None, None]
    scaled = (A * 4**powers).flatten(0, 1)
    for found, sign in zip(roots(scaled), (1, -1), strict=True):
        found = found.unflatten(0, (2, 5)) * 2 ** (-sign * powers)
        assert torch.equal(found, found[:, 2:3].expand_as(found))


# Size of the matrix, of the root's cotangent, and of the inverse root's: from the smallest normal numbers to the
# largest ones where the gradient, size^(-1/2) and size^(-3/2) times the cotangent, is a normal number too. The last two
# are subnormal matrices: they are taken as they are.
RANGE = torch.tensor(
    [
        (1.2e-38, 1e-20, 1e-36), (1.2e-38, 1.2e-38, 1.2e-38), (2e32, 1.0, 1e12), (3.4e38, 3.4e38, 3.4e38),
        (3.4e38, 1e-18, 1e20), (16.0, 3.4e38, 3.4e38), (1.0, 1e-37, 1e-37), (2e-39, 1e-20, 1e-36), (1e-42, 1.0, 1e-37),
    ],
    dtype=torch.float64,
)  # fmt: skip


def at_the_ends_of_the_range(n):
    """A, GS and GR, float32, whose largest entries are those of RANGE."""
    matrices = wishart(1, n, samples=8 * n), symmetric(1, n), symmetric(1, n, seed=2)
    scaled = [T / T.abs().amax() for T in matrices]
    return [(T * size[:, None, None]).float() for T, size in zip(scaled, RANGE.T, strict=True)]


@pytest.mark.parametrize("n", [6, 66])
def test_ends_of_the_range(n):
    """As accurate as anywhere, wherever the result is representable."""
    A, GS, GR = at_the_ends_of_the_range(n)
    assert_accurate(A, GS, GR)


def test_strided_and_asymmetric_input():
    A = wishart(2, 10).float()
    skew = torch.randn(2, 10, 10, generator=torch.Generator().manual_seed(0))
    B = A + skew - skew.mT
    for layout in (B, B.permute(1, 2, 0).contiguous().permute(2, 0, 1), B.mT.contiguous().mT, B[:1].expand(2, -1, -1)):
        S, R = roots(layout)
        assert error(S, exact_root(layout)) < 16 * EPS
        assert torch.equal(S, S.mT)
        assert torch.equal(R, R.mT)


@pytest.mark.parametrize("condition", [10.0, 1e5])
def test_ridge(condition):
    A, G, eye = with_spectrum("log", 2, 9, condition).float(), symmetric(2, 9).float(), torch.eye(9)
    mean = A.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    S, R = roots(A, 0.25)
    assert error(S, exact_root(A + 0.25 * mean * eye)) < 8 * EPS
    true = exact_gradient(A + 0.25 * mean * eye, G)
    true = true + 0.25 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    assert error(solve(S, R, G, None, 0.25), true) < 32 * EPS


@pytest.mark.parametrize("n", [12, 65])
def test_half_input(n):
    A = wishart(1, n).half()
    S, _ = roots(A)
    assert S.dtype == torch.float32
    assert error(S, exact_root(A.float())) < 16 * EPS


def test_a_matrix_among_others_has_the_same_bits_alone():
    A = torch.cat([with_spectrum("log", 1, 11, condition) for condition in (3.0, 300.0, 1e6)]).float()
    G = symmetric(3, 11).float()
    S, R = roots(A)
    X = solve(S, R, G, G)
    for i in range(3):
        alone = roots(A[i : i + 1])
        gradient = solve(*alone, G[i : i + 1], G[i : i + 1])
        for found, expected in zip((*alone, gradient), (S, R, X), strict=True):
            assert torch.equal(found[0], expected[i])
