"""The paper's methods and gradient by kernels, under Triton's interpreter."""

import pytest
import torch
import triton

import matroot
from matroot import Lyapunov, NewtonSchulz, Pade, Taylor
from matroot._autograd.fused import fused_call, fused_roots
from matroot.backends.triton.backend import Triton
from matroot.backends.triton.paper.methods import evaluate, solve
from matroot.methods._base import select

from ..bad_matrices import assert_harm_no_other
from ..matrices import apply, error, random_like, spectrum, wishart, with_eigenvalues
from .test_on_chip import at_the_ends_of_the_range

EPS = torch.finfo(torch.float32).eps
METHODS = (
    Taylor(),
    Taylor(2),
    Taylor(13),
    Pade(),
    Pade(1),
    Pade(6),
    Pade(3, "partial-fractions"),
    NewtonSchulz(),
    NewtonSchulz(1),
    NewtonSchulz(3, norm="trace"),
    NewtonSchulz(form="single"),
    NewtonSchulz(1, "single"),
    NewtonSchulz(2, "single", "trace"),
)
every_method = pytest.mark.parametrize("method", METHODS, ids=str)
one_of_each = pytest.mark.parametrize(
    "method", [Taylor(), Pade(), Pade(6), NewtonSchulz(), NewtonSchulz(form="single")], ids=str
)
every_output = pytest.mark.parametrize("output", ["sqrt", "invsqrt", "both"])


def tolerance(method):
    """A few roundings a product; the polynomials of Pade span 4^N, and so many digits are lost."""
    return (4**method.degree if isinstance(method, Pade) and method.by_polynomials else 32) * EPS


def kernel(A, method, output="both", ridge=0.0):
    return evaluate(A, ridge, method, output)


def stepwise(A, method, output="both", **kwargs):
    """The same step by step in double precision, as a tuple."""
    if output == "both":
        return tuple(matroot.roots(A, method, **kwargs))
    return ((matroot.sqrtm if output == "sqrt" else matroot.invsqrtm)(A, method, **kwargs),)


def stepwise_gradient(A, method, output, cotangents, gradient, ridge=0.0):
    A = A.double().requires_grad_()
    found = stepwise(A, method, output, gradient=gradient, ridge=ridge)
    used = [(root, G.double()) for root, G in zip(found, cotangents, strict=True) if G is not None]
    return torch.autograd.grad([root for root, _ in used], A, [G for _, G in used])[0]


def fused(A, method, output, gradient=None, ridge=0.0):
    """What a call on a GPU does, on the CPU."""
    return fused_roots(A, ridge, fused_call(Triton(), method, gradient or Lyapunov(), output))


def test_this_is_the_interpreter():
    assert triton.knobs.runtime.interpret


@every_method
def test_roots(method):
    A = wishart(1, 17, samples=40).float()
    for found, true in zip(kernel(A, method), stepwise(A.double(), method), strict=True):
        assert error(found, true) < tolerance(method)
        assert torch.equal(found, found.mT)


@one_of_each
@pytest.mark.parametrize(("n", "output"), [(1, "sqrt"), (2, "invsqrt"), (15, "sqrt"), (33, "sqrt"), (64, "invsqrt")])
def test_other_sizes(method, n, output):
    A = wishart(1, n, samples=2 * n + 4).float()
    (found,), (true,) = kernel(A, method, output), stepwise(A.double(), method, output)
    assert error(found, true) < tolerance(method)
    assert error(found, stepwise(A, method, output)[0].double()) < tolerance(method)


@one_of_each
def test_one_output_is_what_both_are(method):
    A = wishart(1, 5).float()
    S, R = kernel(A, method)
    assert torch.equal(kernel(A, method, "sqrt")[0], S)
    assert torch.equal(kernel(A, method, "invsqrt")[0], R)


@pytest.mark.parametrize("kind", ["log", "low-rank"])
@pytest.mark.parametrize("method", [Taylor(7), Pade(4), Pade(7), NewtonSchulz(4)], ids=str)
def test_scalar_functions_of_eigenvalues(method, kind):
    A = with_eigenvalues(spectrum(kind, 12, 1e4))[None].float()
    values = torch.linalg.eigvalsh(A.double())
    norm = values.square().sum().sqrt()

    def function(inverse):
        def scalar(values):
            x = values / norm
            if isinstance(method, Taylor):
                power = -0.5 if inverse else 0.5
                term, root = torch.ones_like(x), torch.ones_like(x)
                for k in range(1, method.degree + 1):
                    term = term * (k - 1 - power) / k * (1 - x)
                    root = root + term
            elif isinstance(method, Pade):
                s = x.clamp_min(1e-12).sqrt()
                root = s / torch.tanh((2 * method.degree + 1) * torch.atanh(s))
                root = 1 / root if inverse else root
            else:
                y, z = x, torch.ones_like(x)
                for _ in range(method.iterations):
                    y, z = 0.5 * y * (3 - z * y), 0.5 * z * (3 - z * y)
                root = z if inverse else y
            return root / norm.sqrt() if inverse else root * norm.sqrt()

        return scalar

    for found, inverse in zip(kernel(A, method), (False, True), strict=True):
        assert error(found, apply(function(inverse), A)) < 4 * tolerance(method)


@pytest.mark.parametrize(
    "gradient", [Lyapunov(), Lyapunov(1), Lyapunov(12, tolerance=1e-3), Lyapunov(11, norm="root")], ids=str
)
@pytest.mark.parametrize(
    ("output", "used"),
    [("sqrt", (1,)), ("invsqrt", (1,)), ("both", (1, 1)), ("both", (1, 0)), ("both", (0, 1))],
)
def test_gradients(gradient, output, used):
    method, A = NewtonSchulz(), wishart(1, 17, samples=60).float()
    cotangents = tuple(random_like(A, seed) if use else None for seed, use in enumerate(used))
    found = solve(kernel(A, method, output), cotangents, 0.0, gradient, output)
    # The steps amplify rounding where eigenvalues are small: by ||A||/lambda_min at most.
    assert error(found, stepwise_gradient(A, method, output, cotangents, gradient)) < 200 * EPS
    assert torch.allclose(found, found.mT, rtol=0, atol=10 * EPS * found.abs().max().item())


@one_of_each
@every_output
def test_the_differentiable_call(method, output):
    """Values, gradients with a ridge and from an expanded upstream, and second and batched derivatives."""
    A = wishart(1, 6, samples=24).float().requires_grad_()
    found = fused(A, method, output, ridge=0.25)
    roots = stepwise(A.detach().double(), method, output, ridge=0.25)
    for root, true in zip(found, roots, strict=True):
        assert error(root.detach(), true) < tolerance(method)
    ones = tuple(torch.ones(()).expand_as(root) for root in found)
    (gradient,) = torch.autograd.grad(found, A, ones, retain_graph=True)
    true = stepwise_gradient(A.detach(), method, output, ones, Lyapunov(), ridge=0.25)
    limit = 16 * tolerance(method)
    assert error(gradient, true) < limit
    (batched,) = torch.autograd.grad(
        found, A, tuple(G.expand(2, *G.shape) for G in ones), retain_graph=True, is_grads_batched=True
    )
    assert error(batched[1], true) < limit

    def second(X, outputs):
        (first,) = torch.autograd.grad(sum(root.sum() for root in outputs), X, create_graph=True)
        return torch.autograd.grad(first.square().sum(), X)[0]

    X = A.detach().double().requires_grad_()
    true = second(X, stepwise(X, method, output, gradient=Lyapunov(), ridge=0.25))
    assert error(second(A, found), true) < 4 * limit


@one_of_each
def test_bad_matrices_harm_no_other(method):
    def results(A):
        roots = kernel(A, method)
        if method != Taylor():  # whose roots stand for those of all methods in the gradient
            return roots
        return *roots, solve(roots, (torch.ones_like(A), None), 0.0, Lyapunov(), "both")

    assert_harm_no_other(wishart(5, 5).float(), (1, 3, 2, 4), results)


def test_bad_matrices_have_bad_gradients_of_the_inverse_root():
    A = wishart(3, 5).float()
    A[0], A[1] = 0, float("nan")
    X = solve(kernel(A, Taylor(), "invsqrt"), (torch.ones_like(A),), 0.0, Lyapunov(), "invsqrt")
    assert not X[0].any()
    assert torch.isnan(X[1]).all()
    assert torch.isfinite(X[2]).all()


def test_definite_up_to_rounding():
    """The line is where it is step by step: 4 n eps of a bound of the largest eigenvalue."""
    n = 16
    made = []
    for relative in (0.0, -0.5, -3.0, -30.0):
        values = torch.linspace(0.5, 1, n, dtype=torch.float64)
        values[0] = relative * 4 * n * EPS
        made.append(with_eigenvalues(values, dtype=torch.float32))
    A = torch.stack(made)
    expected = stepwise(A, Taylor())
    for found, true in zip(kernel(A, Taylor()), expected, strict=True):
        assert torch.equal(torch.isnan(found), torch.isnan(true))
        assert error(found[:2], true[:2].double()) < 32 * EPS
    assert torch.isnan(expected[0]).all(-1).all(-1).tolist() == [False, False, True, True]


def test_half_input():
    """Matrices that are indefinite by rounding to half are shifted; clearly indefinite ones are refused."""
    A = wishart(3, 12).half()
    low = wishart(12, samples=4)
    A[1] = low.half()
    A[2] = (low - 0.1 * torch.eye(12)).half()
    for method in (Taylor(), Pade()):
        expected = stepwise(A, method)
        for found, true in zip(evaluate(A, 0.0, method, "both"), expected, strict=True):
            assert found.dtype == torch.float32
            assert torch.isnan(found[2]).all()
            assert torch.isnan(true[2]).all()
            assert error(found[:2], true[:2].double()) < torch.finfo(torch.float16).eps


def test_half_gradients():
    A, G = wishart(2, 10, samples=40).half(), wishart(2, 10, seed=1).half()
    X = A.clone().requires_grad_()
    (root,) = fused(X, Pade(), "sqrt")
    (found,) = torch.autograd.grad(root, X, G)
    assert root.dtype == found.dtype == torch.float16
    true = stepwise_gradient(A, Pade(), "sqrt", (G,), Lyapunov())
    assert error(found, true) < torch.finfo(torch.float16).eps


POWERS = torch.tensor([-54.0, 0.0, 54.0])[:, None, None]


@one_of_each
def test_scale(method):
    """Powers of four change the exponents of the roots, and nothing else."""
    for found, sign in zip(kernel(wishart(1, 6).float() * 4**POWERS, method), (1, -1), strict=True):
        found = found * 2 ** (-sign * POWERS)
        assert torch.equal(found, found[1].expand_as(found))


def test_scale_of_gradients():
    """The same of the gradient."""
    A = wishart(1, 6).float()
    G = random_like(A).expand(3, 6, 6)
    roots = kernel(A * 4**POWERS, NewtonSchulz())
    # A^(-3/2) has a smaller range.
    smaller = tuple(root[1] * 2 ** (sign * POWERS / 2) for root, sign in zip(roots, (1, -1), strict=True))
    for output, scaled, upstream, exponents in (
        ("both", roots, (G, None), POWERS),
        ("both", smaller, (None, G), 1.5 * POWERS),
        ("invsqrt", smaller[1:], (G,), 1.5 * POWERS),
    ):
        found = solve(scaled, upstream, 0.0, Lyapunov(), output) * 2**exponents
        assert torch.equal(found, found[1].expand_as(found))


def test_ends_of_the_range():
    """As accurate as anywhere, wherever the result is representable."""
    A, GS, GR = at_the_ends_of_the_range(6)
    for method in (Taylor(), NewtonSchulz()):
        roots = kernel(A, method)
        for found, true in zip(roots, stepwise(A.double(), method), strict=True):
            assert error(found, true) < 32 * EPS
    for output, upstream in (("sqrt", (GS,)), ("invsqrt", (GR,)), ("both", (GS, GR)), ("both", (None, GR))):
        used = select(output, *roots)
        found = solve(used, upstream, 0.0, Lyapunov(), output)
        true = stepwise_gradient(A, NewtonSchulz(), output, upstream, Lyapunov())
        assert error(found, true) < 200 * EPS  # as in test_gradients


def test_strided_and_asymmetric_input():
    A = wishart(3, 5).float()
    skew = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0))
    B = A + skew - skew.mT
    expected = kernel(B, Pade())
    G = random_like(A)
    gradient = solve(expected, (G, G), 0.0, Lyapunov(), "both")
    for layout in (lambda T: T.permute(1, 2, 0).contiguous().permute(2, 0, 1), lambda T: T.mT.contiguous().mT):
        assert all(torch.equal(a, b) for a, b in zip(kernel(layout(B), Pade()), expected, strict=True))
        found = solve(expected, (layout(G), layout(G)), 0.0, Lyapunov(), "both")
        assert torch.equal(found, gradient)
    assert torch.equal(kernel(B[:1].expand(3, -1, -1), Pade())[0][2], expected[0][0])
    assert error(expected[0], stepwise(A.double(), Pade())[0]) < tolerance(Pade())
