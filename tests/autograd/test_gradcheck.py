"""Derivatives of first, second and third order against finite differences and plain autograd."""

import pytest
import torch

import matroot
from matroot import (
    Eigen,
    EigenClip,
    EigenPade,
    EigenPower,
    EigenTaylor,
    Exact,
    Implicit,
    Krylov,
    Lyapunov,
    Minimax,
    NewtonSchulz,
    Pade,
    PowerIteration,
    Taylor,
    Unrolled,
)

from ..matrices import FUNCTIONS, random_like, wishart, with_eigenvalues

# Enough for the eigenvalues below, whose ratio is at most 3, to converge far beyond gradcheck's tolerance.
CONVERGED = NewtonSchulz(iterations=12)
LYAPUNOV = Lyapunov(iterations=12)

SECOND_ORDER = [
    (Eigen(), Exact()),
    (Eigen(), LYAPUNOV),
    (Eigen(), Implicit(iterations=30)),
    (Eigen(), Krylov()),
    (Minimax(), Krylov()),
    (Minimax(condition=10.0), Exact()),
    (Eigen(), Unrolled()),
    (CONVERGED, Exact()),
    (CONVERGED, LYAPUNOV),
    (Pade(degree=15), LYAPUNOV),
    (Taylor(), Unrolled()),
    (Pade(), Unrolled()),
    (Pade(degree=6), Unrolled()),
    (NewtonSchulz(), Unrolled()),
    (NewtonSchulz(form="single"), Unrolled()),
]
FIRST_ORDER = [(Eigen(), gradient) for gradient in (EigenClip(), EigenPade(), EigenTaylor(100), EigenPower(100))]


def unsymmetric(dtype):
    """Well-separated eigenvalues, and an antisymmetric part that must not matter."""
    values = torch.stack([torch.tensor(v, dtype=torch.float64) for v in ([0.6, 1.0, 1.7], [0.5, 0.9, 1.2])])
    A = torch.stack([with_eigenvalues(v, i, dtype) for i, v in enumerate(values)])
    skew = random_like(A)
    return (A + 0.1 * (skew - skew.mH)).requires_grad_()


def ids(pair):
    return f"{pair[0]}-{pair[1]}"


# torch.linalg.eigh itself refuses to differentiate complex eigenvectors whose phase matters.
PLAIN_EIGH = (Eigen(), Unrolled())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("pair", SECOND_ORDER + FIRST_ORDER, ids=ids)
def test_gradcheck(pair, name):
    method, gradient = pair
    function = lambda A: FUNCTIONS[name](A, method, gradient=gradient)  # noqa: E731
    torch.autograd.gradcheck(function, unsymmetric(torch.float64), check_forward_ad=True, check_batched_grad=True)


# The rule for both roots contains that for the root alone.
@pytest.mark.parametrize("name", ["invsqrtm", "roots"])
@pytest.mark.parametrize("pair", [pair for pair in SECOND_ORDER + FIRST_ORDER if pair != PLAIN_EIGH], ids=ids)
def test_gradcheck_complex(pair, name):
    method, gradient = pair
    A = unsymmetric(torch.complex128).detach()[0].requires_grad_()
    torch.autograd.gradcheck(lambda A: FUNCTIONS[name](A, method, gradient=gradient), A, check_forward_ad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("pair", SECOND_ORDER, ids=ids)
def test_gradgradcheck(pair, name):
    method, gradient = pair
    torch.autograd.gradgradcheck(lambda A: FUNCTIONS[name](A, method, gradient=gradient), unsymmetric(torch.float64))


@pytest.mark.parametrize("gradient", [Exact(), LYAPUNOV], ids=str)
def test_gradgradcheck_complex(gradient):
    torch.autograd.gradgradcheck(lambda A: matroot.sqrtm(A, gradient=gradient), unsymmetric(torch.complex128))


def test_power_iteration_gradcheck():
    A = with_eigenvalues(torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)).requires_grad_()
    torch.autograd.gradcheck(lambda A: matroot.sqrtm(A, PowerIteration(iterations=5)), A)
    torch.autograd.gradgradcheck(lambda A: matroot.sqrtm(A, PowerIteration(iterations=5)), A)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("pair", [p for p in SECOND_ORDER if p[1] != Unrolled()], ids=ids)
def test_hessian_on_unsymmetrised_input(pair, name):
    """Against plain autograd through torch.linalg.eigh, which is right for distinct eigenvalues."""
    A = unsymmetric(torch.float64).detach()[0]
    W = random_like(A)

    def hessian(method, gradient):
        return torch.autograd.functional.hessian(lambda X: (W * FUNCTIONS[name](X, method, gradient=gradient)).sum(), A)

    torch.testing.assert_close(hessian(*pair), hessian(Eigen(), Unrolled()), rtol=1e-8, atol=1e-8)


def test_third_derivative():
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    value = matroot.sqrtm(x[None, None]).sum()
    for true in (0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5):
        (value,) = torch.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("gradient", ["eigen-clip", "eigen-taylor", "eigen-pade", "eigen-power"])
def test_second_derivative_of_a_baseline_fails_aloud(gradient):
    A = wishart(3).requires_grad_()
    (first,) = torch.autograd.grad(matroot.sqrtm(A, gradient=gradient).sum(), A, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivative only"):
        torch.autograd.grad(first.square().sum(), A)
