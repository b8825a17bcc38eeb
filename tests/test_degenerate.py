"""Matrices without a root beside others, indefinite and singular ones, and every scale, for every pair and function."""

import pytest
import torch

import matroot

from .agreement import assert_same, computed_by, condition
from .bad_matrices import INDEFINITE, NOT_FINITE, without_root
from .matrices import error, exact_root, spectrum, wishart, with_eigenvalues
from .pairs import CASES, NAMED, PLAIN_EIGH, evaluate, through_eigenvectors, value_and_gradient

every_case = pytest.mark.parametrize(("pair", "name"), CASES)


# --- matrices without a root ---------------------------------------------------------------------


@every_case
def test_bad_matrices_harm_no_other(pair, name):
    """Their results are NaN; those of the others are what they are alone."""
    for dtype in (torch.float32, torch.float64, torch.complex64):
        good = wishart(3, 6, dtype=dtype)
        k = condition(good, through_eigenvectors(pair))
        alone = value_and_gradient(pair, name, good)
        for kinds in (NOT_FINITE, INDEFINITE):
            bad = [without_root(kind, good[0]) for kind in kinds]
            mixed = torch.stack([good[0], *bad, good[1], good[2]])
            found = value_and_gradient(pair, name, mixed)
            for part, expected, backend in zip(found, alone, computed_by(good, *NAMED[pair]), strict=True):
                assert torch.isnan(part[1:-2]).all(), kinds
                assert_same(part[[0, -2, -1]], expected, backend, k)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (16, 3), (64, 48), (256, 48)])
def test_rounding_is_not_indefinite(n, rank, dtype):
    """Rank-deficient covariances have eigenvalues of either sign at the level of rounding."""
    X = torch.randn(20 if n < 256 else 4, n, rank, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    A = (X @ X.mT / rank).to(dtype)
    for method in ("eigen", "pade"):
        assert torch.isfinite(matroot.sqrtm(A, method)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("n", [3, 8, 64, 256])
@pytest.mark.parametrize("kind", ["one-small", "log"])
def test_clearly_indefinite_at_any_size(n, dtype, kind):
    """One eigenvalue at -5 % of the largest is no rounding, whatever the others are."""
    values = spectrum(kind, n, 10.0)
    values[-1] = -0.05
    assert torch.isnan(matroot.sqrtm(with_eigenvalues(values).to(dtype))).all()


NEGATIVE = {
    "eigen": {"method": "eigen"},
    "compiled": {"method": "minimax"},
    "torch": {"method": "minimax", "backend": "torch"},
    "tolerance": {"method": matroot.Minimax(tolerance=1e-6)},
    "exact gradient": {"method": "minimax", "gradient": "exact"},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("n", [2, 8, 50])
@pytest.mark.parametrize("name", NEGATIVE)
def test_eigenvalues_negative_by_rounding_count_as_zero(name, n, dtype):
    """Down to -4 n eps lambda_max, and on to where they are refused: bounds of lambda_max are larger, up to five times
    here. With one just above that line the root of the shifted matrix is all there is, sqrt(sigma) at zero."""
    units = torch.linspace(-40, 0, 101).double()
    tolerance = n * torch.finfo(dtype).eps
    values = torch.ones(len(units), n, dtype=torch.float64)
    values[::2, n // 2 :] = 0  # rank-deficient, or the identity but for one
    values[:, -1] = units * tolerance
    Q = torch.linalg.qr(torch.randn(n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)).Q
    A = ((Q * values[:, None]) @ Q.mT).to(dtype).requires_grad_()
    S, R = matroot.roots(A, **NEGATIVE[name])
    refused = torch.isnan(S).any(-1).any(-1)
    assert refused[units < -20].all()
    assert not refused[units > -3.5].any()
    exact = (Q * values.clamp_min(0).sqrt()[:, None]) @ Q.mT
    off = torch.linalg.matrix_norm((S - exact)[~refused], 2)
    assert (off < 1.5 * (20 * tolerance) ** 0.5).all()
    assert torch.isfinite(R[~refused]).all()
    (gradient,) = torch.autograd.grad(S[~refused].real.sum() + R[~refused].real.sum(), A)
    assert torch.isfinite(gradient[~refused]).all()
    for matrix, bad in zip(A.detach(), refused, strict=True):
        if bad:
            with pytest.raises(ValueError, match="A is indefinite"):
                matroot.sqrtm(matrix, check=True, **NEGATIVE[name])


@pytest.mark.parametrize("method", [matroot.Pade(20), matroot.NewtonSchulz(15), matroot.Taylor(40)], ids=str)
def test_rounding_to_half_is_not_amplified(method):
    """A rank-one matrix rounded to bfloat16 has a negative eigenvalue that methods must not extrapolate to."""
    A = torch.tensor([[3.875, 3.4375], [3.4375, 3.03125]]).bfloat16()
    assert torch.linalg.eigvalsh(A.double())[0] < 0
    S, R = matroot.roots(A, method)
    assert error(S, exact_root(A)) < 0.3
    assert R.abs().max() < 5  # about 1/sqrt(eps lambda_max) for the shifted zero


def test_a_diverged_root_harms_no_other():
    """Sixty steps on a singular matrix overflow; the gradient of its neighbour does not change."""
    X = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    A = torch.stack([X @ X.mT, torch.eye(16)]).requires_grad_()
    S = matroot.sqrtm(A, matroot.NewtonSchulz(60), gradient="exact")
    (gradient,) = torch.autograd.grad(S.sum(), A)
    assert not torch.isfinite(S[0]).all()
    torch.testing.assert_close(gradient[1], 0.5 * torch.ones(16, 16))


# --- scale ---------------------------------------------------------------------------------------


# The two outputs of ``roots`` scale differently; each is tested alone.
@pytest.mark.parametrize(("pair", "name"), [case for case in CASES if case[1] != "roots"])
def test_scale_equivariance(pair, name):
    """sqrtm(cA) = sqrt(c) sqrtm(A), invsqrtm(cA) = invsqrtm(A)/sqrt(c); gradients likewise."""
    power = 0.5 if name == "sqrtm" else -0.5
    A = wishart(2, 5, dtype=torch.float32)
    value, gradient = value_and_gradient(pair, name, A)
    for scale in (1e-30, 1e-20, 1e20, 1e30):
        scaled_value, scaled_gradient = value_and_gradient(pair, name, A * scale)
        assert error(scaled_value.double(), scale**power * value.double()) < 1e-5, scale
        if "clip" not in pair and 1e-37 < scale ** (power - 1) < 1e37:
            assert error(scaled_gradient.double(), scale ** (power - 1) * gradient.double()) < 1e-4, scale


@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "eigen"])
def test_powers_of_four_are_exact(method):
    """At equal addresses modulo 64, where PyTorch puts new tensors, the libraries do the same sums."""
    A = wishart(3, 6, dtype=torch.float32)
    S, R = matroot.roots(A, method)
    for k in (-40, -3, 1, 50):
        scaled_S, scaled_R = matroot.roots(A * 4.0**k, method)
        assert torch.equal(scaled_S, S * 2.0**k)
        assert torch.equal(scaled_R, R * 2.0**-k)


def test_the_ends_of_the_float32_range():
    for value in (torch.finfo(torch.float32).max, torch.finfo(torch.float32).tiny, 1e-42):
        A = value * torch.eye(3)
        torch.testing.assert_close(matroot.sqrtm(A), A.double().sqrt().float())


# --- singular matrices and repeated eigenvalues --------------------------------------------------

DEGENERATE = torch.stack(
    [
        torch.zeros(4, 4),
        torch.eye(4),
        torch.diag(torch.tensor([2.0, 2.0, 1.0, 1.0])),
        torch.ones(4, 4),  # rank one
        with_eigenvalues(torch.tensor([1.0, 0.3, 0.0, 0.0])).float(),
        torch.diag(torch.tensor([1.0, 1.0 + 1.2e-7, 1.0, 0.5])),  # nearly repeated
    ]
)


@every_case
def test_degenerate_matrices_are_finite(pair, name):
    """Values, gradients and, where they are defined, second derivatives."""
    for dtype in (torch.float32, torch.float64, torch.complex64):
        A = DEGENERATE.to(dtype).requires_grad_()
        value = evaluate(pair, name, A)
        assert torch.isfinite(value).all()
        if pair == PLAIN_EIGH:
            continue
        (gradient,) = torch.autograd.grad((value * torch.ones_like(value)).sum().real, A, create_graph=True)
        assert torch.isfinite(gradient).all()
        if not through_eigenvectors(pair):
            (second,) = torch.autograd.grad(gradient.abs().square().sum(), A)
            assert torch.isfinite(second).all()


@every_case
def test_zero_matrix_is_zero(pair, name):
    """Also one whose symmetric part is zero."""
    value, gradient = value_and_gradient(pair, name, torch.zeros(2, 3, 3))
    assert not value.any()
    assert not gradient.any()
    value, _ = value_and_gradient(pair, name, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    assert not value.any()


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
def test_plain_eigh_fails_where_the_default_does_not(function):
    """The reason for derivative rules of our own."""
    A = torch.eye(3).requires_grad_()
    (plain,) = torch.autograd.grad(function(A, "eigen", gradient="unrolled")[0, 1], A)
    (ours,) = torch.autograd.grad(function(A)[0, 1], A)
    assert not torch.isfinite(plain).all()
    assert torch.isfinite(ours).all()
    assert ours[0, 1] != 0
