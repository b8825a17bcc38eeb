"""Minimax roots and gradients of one program per matrix, under Triton's interpreter."""

import pytest
import torch
import triton
import triton.language as tl

from matroot.backends.triton import minimax
from matroot.backends.triton.primitives import integer_split_matmul
from matroot.bench.problems import SPECTRA, symmetric, with_spectrum
from matroot.methods.minimax import kernel_schedules

from ..bad_matrices import assert_harm_no_other
from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, wishart

EPS = torch.finfo(torch.float32).eps
# Diverging iterations of indefinite matrices overflow on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")


def roots(A, ridge=0.0):
    return minimax.roots(A, ridge, kernel_schedules)


def assert_accurate(A, GS, GR):
    """Roots and gradients of well-conditioned matrices, to a few roundings a product."""
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS
    root, inverse = exact_gradient(A, GS), exact_gradient(A, GR, inverse=True)
    assert error(minimax.solve(S, R, GS, None, 0.0), root) < 32 * EPS
    assert error(minimax.solve(S, R, None, GR, 0.0), inverse) < 64 * EPS
    assert error(minimax.solve(S, R, GS, GR, 0.0), root + inverse) < 64 * EPS


def test_this_is_the_interpreter():
    assert triton.knobs.runtime.interpret


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 64])
def test_roots_and_gradients(n):
    A, GS, GR = wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float()
    assert_accurate(A, GS, GR)


@pytest.mark.parametrize("kind", [kind for kind in SPECTRA if kind not in ("wishart", "low-rank")])
@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_any_condition(kind, condition):
    """The floors of the coupled iteration in float32: u sqrt(condition) and u condition, times two."""
    A = with_spectrum(kind, 1, 24, condition).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < EPS * condition**0.5 + 5 * EPS
    assert error(R, exact_inverse_root(A)) < EPS * condition
    G = symmetric(1, 24).float()
    assert error(minimax.solve(S, R, G, None, 0.0), exact_gradient(A, G)) < EPS * condition


@pytest.mark.parametrize("n", [6, 16, 48, 66])
@pytest.mark.parametrize("samples", [2, 1.5, 1.3])
def test_end_of_the_fast_path(n, samples):
    """Matrices that take one more step, that begin on the fast path and do not converge there, and the first beyond.

    Above 64 these are deferred.
    """
    A, G = wishart(1, n, samples=int(samples * n)).float(), symmetric(1, n).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 20 * EPS
    assert error(R, exact_inverse_root(A)) < 40 * EPS
    assert error(minimax.solve(S, R, G, None, 0.0), exact_gradient(A, G)) < 40 * EPS


@triton.jit
def product_kernel(A, B, out, N: tl.constexpr):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, integer_split_matmul(tl.load(A + place), tl.load(B + place)))


@pytest.mark.parametrize("scale", [1e-20, 1, 1e20])
def test_exact_product(scale):
    """Better than float32: rows and columns may differ in size, and any of them may be zero."""
    generator = torch.Generator().manual_seed(0)
    A, B = (torch.randn(64, 64, generator=generator) for _ in range(2))
    A *= torch.logspace(-6, 6, 64)[:, None] * scale
    B *= torch.logspace(6, -6, 64)
    A[3], B[:, 5] = 0, 0
    found = torch.empty(64, 64)
    product_kernel[(1,)](A, B, found, 64)
    true = A.double() @ B.double()
    assert ((found - true).abs() <= 0.5 * EPS * (A.double().abs() @ B.double().abs())).all()


def test_bad_matrices_harm_no_other():
    def results(A):
        S, R = roots(A)
        return S, R, minimax.solve(S, R, torch.ones_like(S), torch.ones_like(S), 0.0)

    assert_harm_no_other(wishart(5, 12).float(), (1, 3, 2, 4), results)


def test_singular_matrices_are_shifted():
    A = wishart(2, 20, samples=6).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 2e-3  # a few roots of eps
    assert torch.isfinite(R).all()
    assert error(S @ R @ A, A.double()) < 0.02


def test_scale():
    """Powers of four change the exponents, and nothing else."""
    A = wishart(1, 8).float()
    powers = torch.tensor([-60.0, -20.0, 0.0, 20.0, 60.0])[:, None, None]
    for found, sign in zip(roots(A * 4**powers), (1, -1), strict=True):
        found = found * 2 ** (-sign * powers)
        assert torch.equal(found, found[2].expand_as(found))


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


def test_ridge():
    A, G, eye = wishart(2, 9).float(), symmetric(2, 9).float(), torch.eye(9)
    mean = A.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    S, R = roots(A, 0.25)
    assert error(S, exact_root(A + 0.25 * mean * eye)) < 8 * EPS
    true = exact_gradient(A + 0.25 * mean * eye, G)
    true = true + 0.25 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    assert error(minimax.solve(S, R, G, None, 0.25), true) < 32 * EPS


@pytest.mark.parametrize("n", [12, 65])
def test_half_input(n):
    A = wishart(1, n).half()
    S, _ = roots(A)
    assert S.dtype == torch.float32
    assert error(S, exact_root(A.float())) < 16 * EPS
