"""Laws that hold for any matrix, over random shapes, spectra, scales and dtypes."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import matroot

from .agreement import assert_same, computed_by, condition
from .matrices import error, exact_gradient, exact_root, orthogonal, with_eigenvalues
from .pairs import NAMED

# Pairs without the baselines whose gradient depends on scale or basis by design.
PAIRS = [p for p in NAMED if "eigen-" not in p and "power" not in p and p != "eigen/unrolled"]

problems = st.fixed_dictionaries(
    {
        "pair": st.sampled_from(PAIRS),
        "n": st.integers(1, 12),
        "decades": st.floats(0, 2),
        "scale": st.floats(-30, 30),
        "seed": st.integers(0, 2**16),
        "inverse": st.booleans(),
        "dtype": st.sampled_from([torch.float64, torch.complex128]),
    }
)


class Problem:
    """A random matrix, an upstream gradient and a function to put them through."""

    def __init__(self, pair, n, decades, scale, seed, inverse, dtype):
        self.method, self.gradient = NAMED[pair]
        self.inverse, self.dtype, self.n, self.seed = inverse, dtype, n, seed
        generator = torch.Generator().manual_seed(seed)
        values = 10 ** (scale - decades * torch.rand(n, dtype=torch.float64, generator=generator))
        self.A = with_eigenvalues(values, seed, dtype)
        G = torch.randn(n, n, dtype=dtype, generator=generator)
        self.G = G + G.mH

    def value(self, A):
        function = matroot.invsqrtm if self.inverse else matroot.sqrtm
        return function(A, self.method, gradient=self.gradient)

    def vjp(self, A, G):
        A = A.clone().requires_grad_()
        return torch.autograd.grad(self.value(A), A, G)[0]


@settings(max_examples=60, deadline=None)
@given(problems)
def test_rotation_equivariance(problem):
    p = Problem(**problem)
    Q = orthogonal(p.n, p.seed + 1, p.dtype)

    def rotate(X):
        return Q @ X @ Q.mH

    assert error(p.value(rotate(p.A)), rotate(p.value(p.A))) < 1e-9
    assert error(p.vjp(rotate(p.A), rotate(p.G)), rotate(p.vjp(p.A, p.G))) < 1e-8


@settings(max_examples=60, deadline=None)
@given(problems, st.floats(-20, 20))
def test_scale_equivariance(problem, exponent):
    p = Problem(**problem)
    scale, power = 10**exponent, -0.5 if p.inverse else 0.5
    assert error(p.value(scale * p.A), scale**power * p.value(p.A)) < 1e-9
    assert error(p.vjp(scale * p.A, p.G), scale ** (power - 1) * p.vjp(p.A, p.G)) < 1e-8


@settings(max_examples=60, deadline=None)
@given(problems)
def test_symmetry_and_linearity_of_the_gradient(problem):
    p = Problem(**problem)
    value, gradient = p.value(p.A), p.vjp(p.A, p.G)
    assert torch.equal(value, value.mH)
    assert torch.equal(gradient, gradient.mH)
    assert error(p.vjp(p.A, 3 * p.G), 3 * gradient) < 1e-10


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 4), st.integers(1, 4))
def test_batch_independence(problem, before, after):
    p = Problem(**problem)
    others = [with_eigenvalues(10.0 ** torch.arange(-k, p.n - k, dtype=torch.float64), k, p.dtype) for k in range(9)]
    batch = torch.stack([*others[:before], p.A, *others[before : before + after]])
    roots, solve = computed_by(batch, p.method, p.gradient)
    assert_same(p.value(batch)[before], p.value(p.A[None])[0], roots, condition(p.A))
    G = torch.stack([p.G] * len(batch))
    assert_same(p.vjp(batch, G)[before], p.vjp(p.A[None], p.G[None])[0], solve, condition(p.A))


@settings(max_examples=60, deadline=None)
@given(problems)
def test_forward_and_reverse_mode_agree(problem):
    """<G, J[T]> = <J*[G], T> for any tangent T."""
    p = Problem(**problem)
    T = p.A @ p.G + p.G @ p.A
    _, pushed = torch.func.jvp(p.value, (p.A,), (T,))
    left, right = (p.G.conj() * pushed).sum().real, (p.vjp(p.A, p.G).conj() * T).sum().real
    size = torch.linalg.matrix_norm(p.G) * torch.linalg.matrix_norm(pushed)
    assert abs(left - right) < 1e-10 * size


@settings(max_examples=60, deadline=None)
@given(problems, st.sampled_from(["eigen/exact", "eigen/lyapunov", "eigen/implicit"]))
def test_roots_are_roots(problem, pair):
    p = Problem(**{**problem, "pair": pair})
    S, R = matroot.roots(p.A, p.method, gradient=p.gradient)
    assert matroot.residual(p.A, S) < 1e-13
    assert matroot.residual(p.A, R, inverse=True) < 1e-11
    assert error(S, exact_root(p.A)) < 1e-13
    assert error(p.vjp(p.A, p.G), exact_gradient(p.A, p.G, p.inverse)) < (1e-2 if "lya" in pair else 1e-9)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_block_diagonal_composition_of_exact_roots(problem):
    """A function of the eigenvalues alone acts on blocks separately."""
    p = Problem(**{**problem, "pair": "eigen/exact"})
    other = with_eigenvalues(torch.tensor([0.3, 0.7, 2.0]) * p.A.diagonal().real.mean(), 5, p.dtype)
    both = p.value(torch.block_diag(p.A, other))
    assert error(both, torch.block_diag(p.value(p.A), p.value(other))) < 1e-11


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 2**16), st.sampled_from(PAIRS))
def test_covariances_of_any_rank_are_finite(dtype, n, samples, seed, pair):
    method, gradient = NAMED[pair]
    X = torch.randn(n, samples, generator=torch.Generator().manual_seed(seed)).to(dtype)
    A = (X @ X.mT / samples).requires_grad_()
    S, R = matroot.roots(A, method, gradient=gradient)
    (gradient_of_both,) = torch.autograd.grad((S + R).sum(), A)
    assert torch.isfinite(S).all()
    assert torch.isfinite(R).all()
    assert torch.isfinite(gradient_of_both).all()


@given(st.integers(1, 30), st.floats(0, 4))
@settings(max_examples=50, deadline=None)
def test_float32_eigen_error(n, decades):
    values = torch.logspace(0, -decades, n, dtype=torch.float64)
    A = with_eigenvalues(values, n, torch.float32)
    eps = torch.finfo(torch.float32).eps
    assert error(matroot.sqrtm(A), exact_root(A)) < 10 * eps * math.sqrt(10**decades)
