"""Every method is a scalar function of the eigenvalues: compare with that function."""

import math

import pytest
import scipy.linalg
import torch

import matroot
from matroot import Eigen, NewtonSchulz, Pade, PowerIteration, Taylor

from ..matrices import (
    CONDITIONS,
    apply,
    error,
    exact_inverse_root,
    exact_root,
    spectrum,
    wishart,
    with_eigenvalues,
    zoo,
)

SIZES = (1, 2, 3, 8, 33, 64, 200)
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4}


def taylor_oracle(degree, inverse):
    def function(x):
        z = 1 - x
        if inverse:
            return sum(math.comb(2 * k, k) / 4**k * z**k for k in range(degree + 1))
        return 1 - sum(math.comb(2 * k, k) / 4**k / (2 * k - 1) * z**k for k in range(1, degree + 1))

    return function


def pade_oracle(degree, inverse):
    def function(x):
        s = x.clamp(1e-300, 1).sqrt()
        root = s / torch.tanh((2 * degree + 1) * torch.atanh(s))
        return 1 / root if inverse else root

    return function


def newton_schulz_oracle(steps, inverse):
    def function(x):
        z = torch.ones_like(x)
        for _ in range(steps):
            z = 0.5 * z * (3 - z * z * x)
        return z if inverse else x * z

    return function


def frobenius(values):
    return torch.linalg.vector_norm(values, dim=-1, keepdim=True)


def trace(values):
    return values.sum(-1, keepdim=True)


CASES = [
    (Taylor(), taylor_oracle, 11, frobenius),
    (Taylor(degree=1), taylor_oracle, 1, frobenius),
    (Taylor(degree=18), taylor_oracle, 18, frobenius),
    (Pade(), pade_oracle, 5, frobenius),
    (Pade(degree=1), pade_oracle, 1, frobenius),
    (Pade(form="partial-fractions"), pade_oracle, 5, frobenius),
    (Pade(degree=8), pade_oracle, 8, frobenius),
    (Pade(degree=20), pade_oracle, 20, frobenius),
    (NewtonSchulz(), newton_schulz_oracle, 5, frobenius),
    (NewtonSchulz(iterations=1), newton_schulz_oracle, 1, frobenius),
    (NewtonSchulz(iterations=7, norm="trace"), newton_schulz_oracle, 7, trace),
    (NewtonSchulz(form="single"), newton_schulz_oracle, 5, frobenius),
    (NewtonSchulz(iterations=1, form="single"), newton_schulz_oracle, 1, frobenius),
    (NewtonSchulz(iterations=2, form="single", norm="trace"), newton_schulz_oracle, 2, trace),
]


# The largest size for the default settings of each method only: others differ in the number of the same products.
LARGE = [case for case in CASES if case[0] == type(case[0])()]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("case", "n"),
    [(case, n) for case in CASES for n in SIZES if n < 200 or case in LARGE],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else str(value),
)
def test_product_methods_equal_their_scalar_function(case, n, dtype):
    method, oracle, order, norm = case
    A = zoo(n, dtype)
    both = matroot.roots(A, method)
    for inverse, found in ((False, matroot.sqrtm(A, method)), (True, matroot.invsqrtm(A, method))):

        def function(values, inverse=inverse):
            theta = norm(values)
            scalar = oracle(order, inverse)(values / theta)
            return scalar / theta.sqrt() if inverse else scalar * theta.sqrt()

        true = apply(function, A)
        assert found.dtype == dtype
        assert error(found, true) < TOLERANCE[dtype]
        assert error(both[inverse], true) < TOLERANCE[dtype]


# LAPACK's backward error is a modest multiple of eps ||A||; relative to the root of the smallest
# eigenvalue that is eps kappa for the inverse root, and eps sqrt(kappa) for the root.
EIGEN_MULTIPLE = 20


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.complex64])
@pytest.mark.parametrize("n", SIZES)
def test_eigen_error_is_a_multiple_of_eps(n, dtype):
    eps = torch.finfo(dtype).eps
    kinds = ("log", "clustered", "one-small", "one-large")
    for kappa in CONDITIONS if n < 200 else CONDITIONS[::2]:
        A = torch.stack([with_eigenvalues(spectrum(kind, n, kappa), seed, dtype) for seed, kind in enumerate(kinds)])
        S, R = matroot.roots(A, Eigen())
        assert error(S, exact_root(A)) < EIGEN_MULTIPLE * eps * math.sqrt(kappa), kappa
        if eps * kappa < 0.01:
            assert error(R, exact_inverse_root(A)) < EIGEN_MULTIPLE * eps * kappa, kappa


@pytest.mark.parametrize("n", [8, 64])
def test_eigen_root_of_low_rank(n):
    """Null directions carry sqrt(eps) noise at most: |sqrt(a) - sqrt(b)| <= sqrt|a - b|."""
    for dtype in (torch.float32, torch.float64):
        A = with_eigenvalues(spectrum("low-rank", n, 100.0), dtype=dtype)
        S = matroot.sqrtm(A, Eigen())
        assert error(S, exact_root(A)) < 3 * math.sqrt(n * torch.finfo(dtype).eps)
        assert error(S @ S, A.double()) < 3 * n * torch.finfo(dtype).eps


def test_eigen_inverse_root_floor():
    """Zero eigenvalues count as eps lambda_max."""
    eps = torch.finfo(torch.float64).eps
    R = matroot.invsqrtm(torch.diag(torch.tensor([4.0, 1.0, 0.0], dtype=torch.float64)), Eigen())
    expected = torch.diag(torch.tensor([0.5, 1.0, 0.5 / math.sqrt(eps)], dtype=torch.float64))
    torch.testing.assert_close(R, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_power_iteration(n, dtype):
    values = torch.linspace(0.0, 0.5, n, dtype=torch.float64)
    values[-1] = 3.0
    A = with_eigenvalues(values, dtype=dtype)
    found = matroot.sqrtm(A, PowerIteration(iterations=40))
    true = apply(lambda x: torch.where(x > 2, x.sqrt(), x / math.sqrt(3.0)), A)
    assert error(found, true) < 1e-12


def test_power_iteration_survives_an_unlucky_start():
    """A start vector in the null space leaves the mean eigenvalue as scale, never a division by zero."""
    start = torch.cos(torch.arange(1.0, 3.0, dtype=torch.float64))
    v = torch.stack([start[1], -start[0]])
    S = matroot.sqrtm(torch.outer(v, v), PowerIteration())
    assert torch.isfinite(S).all()


@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "eigen"])
def test_complex_and_real_agree(method):
    A = wishart(3, 6)
    for found, complexly in zip(matroot.roots(A, method), matroot.roots(A.to(torch.complex128), method), strict=True):
        torch.testing.assert_close(complexly.real, found, rtol=1e-11, atol=1e-11)
        assert complexly.imag.abs().max() < 1e-11


@pytest.mark.parametrize("method", [Taylor(), Pade(), NewtonSchulz(), NewtonSchulz(form="single")])
def test_complex_hermitian(method):
    """With enough terms every method converges to the root of a well-conditioned matrix."""
    values = torch.linspace(0.6, 1.0, 6, dtype=torch.float64)
    A = with_eigenvalues(values, dtype=torch.complex128)
    more = {"degree": 60} if hasattr(method, "degree") else {"iterations": 9}
    if isinstance(method, Pade):
        more = {"degree": 20}
    method = type(method)(**{**vars(method), **more})
    S, R = matroot.roots(A, method)
    assert error(S, exact_root(A)) < 1e-9
    assert error(R, exact_inverse_root(A)) < 1e-9


def test_scipy_agrees():
    A = wishart(12)
    true = torch.from_numpy(scipy.linalg.sqrtm(A.numpy()))
    torch.testing.assert_close(matroot.sqrtm(A), true, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(matroot.invsqrtm(A), torch.linalg.inv(true), rtol=1e-11, atol=1e-11)


@pytest.mark.skipif(not hasattr(torch.linalg, "matrix_sqrth"), reason="torch.linalg.matrix_sqrth is new in torch 2.14")
def test_torch_agrees():
    A = wishart(3, 12)
    torch.testing.assert_close(matroot.sqrtm(A), torch.linalg.matrix_sqrth(A), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("inverse", [False, True])
def test_documented_floors(inverse):
    """What truncation does to a zero eigenvalue, as the docstrings state it."""
    A = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    power = -1 if inverse else 1
    assert function(A, Pade())[1, 1].item() == pytest.approx(11.0**-power)
    assert function(A, Pade(degree=3))[1, 1].item() == pytest.approx(7.0**-power)
    assert function(A, NewtonSchulz())[1, 1].item() == pytest.approx(1.5**5 if inverse else 0)
    if not inverse:
        assert function(A, Taylor())[1, 1].item() == pytest.approx(math.comb(22, 11) / 4**11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Taylor(degree=0), "Taylor: degree must be a positive integer"),
        (lambda: Pade(degree=2.5), "Pade: degree must be a positive integer"),  # type: ignore
        (lambda: Pade(form="continued"), "form must be one of polynomial, partial-fractions"),  # type: ignore
        (lambda: NewtonSchulz(iterations=-1), "NewtonSchulz: iterations must be a positive integer"),
        (lambda: NewtonSchulz(form="double"), "form must be one of coupled, single"),  # type: ignore
        (lambda: NewtonSchulz(norm="max"), "norm must be one of frobenius, trace"),  # type: ignore
        (lambda: PowerIteration(iterations=True), "PowerIteration: iterations must be a positive integer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
