"""Bounds of errors: tight for truncated methods, rounding for converged ones."""

from functools import partial

import pytest
import torch

import matroot
from matroot.bench import baselines, problems, theory
from matroot.methods import Eigen, Minimax


@pytest.mark.parametrize(("n", "times"), [(10, 30), (200, 400)])
def test_decompositions_may_be_off_by_more_the_larger_the_matrix(n, times):
    values = torch.ones(1, n, dtype=torch.float64)
    assert theory.value_bound(Eigen(), values, 1e-7) == pytest.approx(times * 1e-7)
    assert theory.gradient_bound(Eigen(), values, 1e-7) == pytest.approx(times * 1e-7)
    for bound in (theory.value_bound(Minimax(), values, 1e-7), theory.gradient_bound(None, values, 1e-7)):
        assert bound == pytest.approx(30e-7)


@pytest.mark.parametrize(
    "method", [matroot.Taylor(), matroot.Pade(), matroot.NewtonSchulz(), matroot.NewtonSchulz(norm="trace")]
)
@pytest.mark.parametrize("inverse", [False, True])
def test_bounds_of_truncated_methods_are_tight(method, inverse):
    A = problems.covariances(4, 16)
    true = baselines.EighRoot.apply(inverse, A)
    found = (matroot.invsqrtm if inverse else matroot.sqrtm)(A, method)
    bound = theory.value_bound(method, torch.linalg.eigvalsh(A), 2.2e-16, inverse)
    assert 0.9 * bound < problems.largest_error(found, true) <= bound


@pytest.mark.parametrize("iterations", [4, 8])
def test_the_scalar_steps_of_lyapunov_are_the_rule(iterations):
    A, G = problems.covariances(2, 8), problems.symmetric(2, 8)
    values, U = torch.linalg.eigh(A)
    expected = U @ (theory.lyapunov_factor(values, iterations) * (U.mT @ G @ U)) @ U.mT
    rule = partial(matroot.sqrtm, method="eigen", gradient=matroot.Lyapunov(iterations=iterations))
    torch.testing.assert_close(problems.value_and_gradient(rule, A, G)[1], expected)


def test_other_methods_have_no_approximant_and_no_bound():
    values = torch.ones(1, 2, dtype=torch.float64)
    with pytest.raises(TypeError, match="PowerIteration"):
        theory.approximant(matroot.PowerIteration(), values)
    assert theory.value_bound(matroot.PowerIteration(), values, 1e-7) is None
    assert theory.value_bound(matroot.NewtonSchulz(iterations=30), values, 1e-7) is None
