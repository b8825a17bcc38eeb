"""The fused path: independence of other matrices, chunks and threads; memory; singular matrices; failures."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import matroot
from matroot.backends.cpu import chunks

from ..agreement import assert_same, computed_by, condition
from ..bench.test_memory import PeakMemory
from ..installation import needs_compiled_code
from ..matrices import apply, error, exact_gradient, exact_root, random_like, spectrum, wishart, with_eigenvalues
from ..pairs import NAMED
from .test_fused import deceptive, every_dtype, every_pair, values_and_gradient


@pytest.fixture
def two_threads(set_threads):
    set_threads(2)


def everything(n, dtype):
    """Well-conditioned, ill-conditioned, singular and zero matrices, and every kind without a root."""
    kinds = (("log", 1e3), ("log", 1e6), ("one-small", 1e4), ("clustered", 1e2), ("low-rank", 1e3))
    nan, inf, eye = wishart(n, seed=2), wishart(n, seed=3), torch.eye(n, dtype=torch.float64)
    nan[0, -1], inf[0, -1] = math.nan, math.inf
    made = [with_eigenvalues(spectrum(kind, n, kappa), k) for k, (kind, kappa) in enumerate(kinds)]
    made += [wishart(n, seed=1), deceptive(n, 1e5, torch.float64), wishart(n, samples=n // 3), nan, inf, 0 * eye, eye]
    made += [1e30 * wishart(n, seed=4), 1e-30 * wishart(n, seed=5), wishart(n, seed=6) - 2 * eye, wishart(n, seed=7)]
    return torch.stack(made).to(dtype)


def evaluated(pair, A, **kwargs):
    """Both roots and the gradient of a weighted sum of them, the same weights for every matrix."""
    weights = random_like(A[0]), random_like(A[0], 2)
    return values_and_gradient(pair, "both", A, weights, **kwargs)


def assert_same_results(pair, A, found, expected, ridge=0.0):
    """Both roots and the gradient of ``A``, as ``evaluated`` returns them."""
    mean = A.double().diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    k = condition(A.double() + ridge * mean * torch.eye(A.shape[-1], dtype=torch.float64))
    roots, solve = computed_by(A, *NAMED[pair])
    for left, right, backend in zip(found, expected, (roots, roots, solve), strict=True):
        assert_same(left, right, backend, k)


# --- other matrices ------------------------------------------------------------------------------


@every_pair
@every_dtype
@pytest.mark.parametrize("n", [7, 24])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_no_matrix_affects_another(pair, dtype, n, ridge, monkeypatch):
    """Alone, in any order and in chunks of any length."""
    A = everything(n, dtype)
    whole = evaluated(pair, A, ridge=ridge)
    for k in range(len(A)):
        one = A[k : k + 1]
        assert_same_results(pair, one, evaluated(pair, one, ridge=ridge), [X[k : k + 1] for X in whole], ridge)
    order = torch.randperm(len(A), generator=torch.Generator().manual_seed(0))
    assert_same_results(pair, A[order], evaluated(pair, A[order], ridge=ridge), [X[order] for X in whole], ridge)
    for size in (1, 5):
        monkeypatch.setattr(chunks, "_CHUNK", size * n * n)
        assert len(list(chunks.cache_sized_slices(len(A), n))) == math.ceil(len(A) / size)
        assert_same_results(pair, A, evaluated(pair, A, ridge=ridge), whole, ridge)


def assert_alone_as_in_a_batch(pair, n, dtype):
    A = torch.cat([wishart(2, n, dtype=dtype), wishart(1, n, samples=n // 3, dtype=dtype)])
    whole = evaluated(pair, A)
    for k in (0, 2):
        one = A[k : k + 1]
        assert_same_results(pair, one, evaluated(pair, one), [X[k : k + 1] for X in whole])


@every_pair
@pytest.mark.parametrize(("n", "dtype"), [(64, torch.float32), (64, torch.float64), (100, torch.float64)])
@pytest.mark.usefixtures("two_threads")
def test_no_matrix_affects_another_in_threads(pair, n, dtype):
    """Libraries share work among threads in other ways for other sizes and for batches of one."""
    assert_alone_as_in_a_batch(pair, n, dtype)


# One pair only: threads that wait for each other take seconds where tests run side by side.
@needs_compiled_code
@pytest.mark.usefixtures("two_threads")
def test_no_large_matrix_affects_another_in_threads():
    assert_alone_as_in_a_batch("minimax/smith", 200, torch.float32)


@every_pair
def test_training_after_inference(pair):
    A = wishart(4, 24, dtype=torch.float32)
    method, gradient = NAMED[pair]
    with torch.inference_mode():
        S = matroot.sqrtm(A, method, gradient=gradient)
        assert S.is_inference()
    trained, _ = values_and_gradient(pair, "sqrtm", A)
    assert torch.equal(trained, S.clone())


@every_pair
def test_concurrent_calls(pair):
    batches = [wishart(8, 32, seed=k, dtype=torch.float32) for k in range(12)]
    batches[3][2] = deceptive(32, 1e4, torch.float32)
    expected = [evaluated(pair, A) for A in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda A: evaluated(pair, A), 3 * batches))
    for A, results, right in zip(3 * batches, found, 3 * expected, strict=True):
        assert_same_results(pair, A, results, right)


@every_pair
def test_results_survive_the_next_call(pair):
    first = evaluated(pair, everything(24, torch.float32))
    kept = [X.clone() for X in first]
    evaluated(pair, wishart(20, 24, seed=9, dtype=torch.float32))
    for left, right in zip(first, kept, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


# --- memory --------------------------------------------------------------------------------------


def extra_memory(pair, A):
    """Bytes beyond input, root, what is kept for the way back, upstream gradient and gradient.

    The kept matrix is the inverse root or the eigenvectors.
    """
    method, gradient = NAMED[pair]
    with PeakMemory() as memory:
        X, G = A.clone().requires_grad_(), torch.ones_like(A)
        torch.autograd.grad(matroot.sqrtm(X, method, gradient=gradient), X, G)
    return memory.peak - 5 * A.numel() * A.element_size()


@pytest.mark.parametrize("pair", [pytest.param("minimax/smith", marks=needs_compiled_code), "eigen/exact"])
def test_a_small_batch_needs_four_more(pair):
    A = wishart(16, 64, dtype=torch.float32)
    numbers = 20 * 16 * 64 * 4  # a few per row
    assert extra_memory(pair, A) <= 4 * A.numel() * 4 + numbers


@needs_compiled_code
def test_a_large_batch_needs_little_more():
    A = wishart(60, 16, dtype=torch.float32).repeat(1200, 1, 1)
    assert extra_memory("minimax/smith", A) < 64e6 < A.numel() * 4


# --- singular matrices ---------------------------------------------------------------------------


def norm(X):
    return torch.linalg.matrix_norm(X, 2)


@pytest.mark.parametrize(("n", "rank"), [(64, 20), (256, 48)])
@pytest.mark.parametrize("scale", [1.0, 4.0**20, 4.0**-20])
def test_rank_deficient_matrices_are_shifted(n, rank, scale):
    """Of B = A + sigma I with sigma = 4 eps theta, the inverse root and the gradient, and the root less sigma times its
    inverse, as the docstring of Minimax says.

    A and the products are rounded by about eps theta/4 at most, which moves an eigenvalue sigma by a sixteenth.
    """
    A = wishart(3, n, samples=rank, dtype=torch.float32) * scale
    eps = torch.finfo(A.dtype).eps
    values, vectors = torch.linalg.eigh(A.double())
    m2, m4 = values.square().mean(-1), values.pow(4).mean(-1)
    theta = (m2 + ((n - 1) * (m4 - m2.square())).sqrt()).sqrt()
    sigma = (4 * eps * theta)[:, None]
    shifted = A.double() + sigma[..., None] * torch.eye(n, dtype=torch.float64)
    null, rest = vectors[..., : n - rank], vectors[..., n - rank :]

    X = A.clone().requires_grad_()
    S, R = matroot.roots(X, "minimax", gradient="smith")
    G = random_like(A)
    (gradient,) = torch.autograd.grad(S, X, G)
    wrong_S = S.detach().double() - apply(lambda v: v * (v + sigma) ** -0.5, A)
    wrong_R = R.detach().double() - apply(lambda v: (v + sigma) ** -0.5, A)
    least = sigma[:, 0].sqrt()
    assert (norm(wrong_S) < eps**0.5 * norm(S.detach())).all()
    assert (norm(null.mT @ wrong_S @ null) < least / 8).all()
    assert (norm(null.mT @ wrong_R @ null) < 1 / (8 * least)).all()
    assert (norm(rest.mT @ wrong_R @ rest) < 3 * eps**0.5 * norm(rest.mT @ R.detach().double() @ rest)).all()
    true = exact_gradient(shifted, G)
    assert error(gradient, true) < 1 / 16
    assert error(rest.mT @ gradient.double() @ rest, rest.mT @ true @ rest) < 3 * eps**0.5


@pytest.mark.parametrize(("n", "rank"), [(64, 20), (256, 48)])
def test_powers_of_four_are_exact_for_singular_matrices(n, rank):
    A = wishart(2, n, samples=rank, dtype=torch.float32)
    S, R = matroot.roots(A, "minimax")
    for k in (-5, 1, 5):
        scaled_S, scaled_R = matroot.roots(A * 4.0**k, "minimax")
        assert torch.equal(scaled_S, S * 2.0**k)
        assert torch.equal(scaled_R, R * 2.0**-k)


# --- eigendecompositions that fail ----------------------------------------------------------------


def fragile(eigh):
    """An ``eigh`` that does not converge if a value is not finite, as on other platforms."""

    def decompose(A):
        if not torch.isfinite(A).all():
            raise torch.linalg.LinAlgError("the algorithm failed to converge")
        return eigh(A)

    return decompose


def test_an_error_that_stays(monkeypatch):
    def fail(A):
        raise torch.linalg.LinAlgError("never converges")

    monkeypatch.setattr(torch.linalg, "eigh", fail)
    with pytest.raises(torch.linalg.LinAlgError, match="never converges"):
        matroot.sqrtm(wishart(6, 4), "eigen")


@every_dtype
@pytest.mark.parametrize("places", [(2,), (0, 4)])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_failed_decompositions_harm_no_other(dtype, bad, places, monkeypatch):
    A = wishart(5, 16, dtype=dtype)
    good = [k for k in range(5) if k not in places]
    expected = evaluated("eigen/exact", A[good])
    A[[*places], 3, 3] = bad
    monkeypatch.setattr(torch.linalg, "eigh", fragile(torch.linalg.eigh))
    found = evaluated("eigen/exact", A)
    assert_same_results("eigen/exact", A[good], [X[good] for X in found], expected)
    assert all(torch.isnan(X[[*places]]).all() for X in found)
    assert error(found[0][good], exact_root(A[good])) < 20 * torch.finfo(dtype).eps  # eigh's own
