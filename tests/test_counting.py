"""The complexity tables, counted."""

import pytest
import torch

import matroot
from matroot import Counts, Eigen, Exact, Implicit, Lyapunov, NewtonSchulz, Pade, Taylor

from .matrices import wishart

A = wishart(2, 8)
GUARD = 1  # one Cholesky factorisation tells indefinite matrices apart


def forward(function, method):
    with matroot.count_operations() as counts:
        function(A, method)
    return counts


def backward(function, method, gradient):
    X = A.clone().requires_grad_()
    value = function(X, method, gradient=gradient)
    with matroot.count_operations() as counts:
        torch.autograd.grad(value, X, torch.ones_like(A))
    return counts


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
def test_forward_methods(function):
    assert forward(function, Taylor(degree=11)) == Counts(products=5, factorizations=GUARD)
    assert forward(function, Pade(degree=5)) == Counts(products=4, solves=1, factorizations=1 + GUARD)
    assert forward(function, Eigen()) == Counts(products=1, decompositions=1)  # eigenvalues tell


def test_systems_of_a_single_right_hand_side_are_none():
    """``Minimax`` solves some to estimate the condition."""
    counts = forward(matroot.sqrtm, matroot.Minimax(tolerance=1e-6))
    assert counts.products > 0
    assert counts.solves == 0


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
@pytest.mark.parametrize("form", ["coupled", "single"])
@pytest.mark.parametrize("iterations", [2, 3, 5, 8])
def test_newton_schulz(function, form, iterations):
    counts = forward(function, NewtonSchulz(iterations=iterations, form=form))
    assert counts == Counts(products=3 * iterations - 3, factorizations=GUARD)


@pytest.mark.parametrize("degree", range(1, 19))
def test_never_more_than_the_paper(degree):
    """Paper: K - 1 products for Taylor, N - 1 for both Pade polynomials (and one solve)."""
    assert forward(matroot.sqrtm, Taylor(degree=degree)).products <= degree - 1
    assert forward(matroot.sqrtm, Pade(degree=degree)).products <= degree - 1
    assert forward(matroot.sqrtm, Pade(degree=degree, form="polynomial")).products <= degree - 1


@pytest.mark.parametrize("iterations", [2, 5, 8])
def test_lyapunov(iterations):
    """Paper: 6 products an iteration, 3 more for the inverse root."""
    gradient = Lyapunov(iterations=iterations)
    assert backward(matroot.sqrtm, "pade", gradient) == Counts(products=4 * iterations - 2)
    assert backward(matroot.invsqrtm, "pade", gradient) == Counts(products=4 * iterations - 2 + 3)


def test_exact_reuses_the_decomposition():
    for function in (matroot.sqrtm, matroot.invsqrtm):
        assert backward(function, "eigen", Exact()) == Counts(products=4)
        assert backward(function, "pade", Exact()) == Counts(products=4, decompositions=1)


def test_implicit_takes_one_product_an_iteration():
    assert backward(matroot.sqrtm, "eigen", Implicit(iterations=7, tolerance=1e-300)) == Counts(products=7)


def test_both_roots_share_work():
    assert forward(matroot.roots, NewtonSchulz(iterations=5)).products == 13
    assert forward(matroot.roots, Pade()).products == 4
    assert forward(matroot.roots, Taylor(degree=11)).products == 7
    assert forward(matroot.roots, Eigen()).decompositions == 1


def test_matrix_vector_products_do_not_count():
    assert forward(matroot.sqrtm, "power-iteration").products == 0


def test_nesting():
    with matroot.count_operations() as outer:
        inner = forward(matroot.sqrtm, Taylor(degree=11))
    assert inner == outer
