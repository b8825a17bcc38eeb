"""The fused path means what the step-by-step pipeline means: values, derivatives, laws."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch.autograd.functional import hessian, jacobian

import matroot

from ..agreement import assert_same, computed_by, condition
from ..installation import needs_compiled_code
from ..matrices import (
    error,
    exact_inverse_root,
    exact_root,
    orthogonal,
    random_like,
    spectrum,
    wishart,
    with_eigenvalues,
)
from ..pairs import NAMED

FUSED = ("minimax/smith", "minimax/krylov", "eigen/exact")
every_pair = pytest.mark.parametrize(
    "pair", [pytest.param(pair, marks=[needs_compiled_code] * pair.startswith("minimax")) for pair in FUSED]
)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])

FUNCTIONS = {
    "sqrtm": lambda *args, **kwargs: (matroot.sqrtm(*args, **kwargs),),
    "invsqrtm": lambda *args, **kwargs: (matroot.invsqrtm(*args, **kwargs),),
    "both": lambda *args, **kwargs: matroot.roots(*args, **kwargs),
    "first of both": lambda *args, **kwargs: matroot.roots(*args, **kwargs)[:1],
    "second of both": lambda *args, **kwargs: matroot.roots(*args, **kwargs)[1:],
}
every_function = pytest.mark.parametrize("function", FUNCTIONS)


def evaluate(pair, function, A, **kwargs):
    method, gradient = NAMED[pair]
    return FUNCTIONS[function](A, method, gradient=gradient, **kwargs)


def values_and_gradient(pair, function, A, weights=None, **kwargs):
    """The outputs, and the gradient of their weighted sum: without weights the upstream gradient is expanded."""
    A = A.detach().requires_grad_()
    outputs = evaluate(pair, function, A, **kwargs)
    terms = outputs if weights is None else [w * output for w, output in zip(weights, outputs, strict=False)]
    (gradient,) = torch.autograd.grad(sum(term.sum() for term in terms), A)
    return [*(output.detach() for output in outputs), gradient]


@pytest.fixture
def step_by_step():
    """A function that computes what ``values_and_gradient`` does without the fused path."""

    def compute(pair, function, A, *args, **kwargs):
        assert matroot.choose(A, *NAMED[pair]).backend != "torch"
        return values_and_gradient(pair, function, A, *args, backend="torch", **kwargs)

    return compute


def assert_agree(found, expected, multiple, kappa):
    """Both ways round differently: errors are a small multiple of eps kappa."""
    for left, right in zip(found, expected, strict=True):
        assert left.shape == right.shape
        assert error(left, right.double()) < multiple * torch.finfo(right.dtype).eps * kappa


@every_pair
@every_function
@every_dtype
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_equals_the_step_by_step_pipeline(pair, function, dtype, ridge, step_by_step):
    for n in (5, 24):
        kinds = ("log", "clustered", "one-small", "one-large")
        A = torch.stack([with_eigenvalues(spectrum(kind, n, 1e2), k, dtype) for k, kind in enumerate(kinds)])
        arguments = pair, function, A, (random_like(A), random_like(A, 2))
        assert_agree(values_and_gradient(*arguments, ridge=ridge), step_by_step(*arguments, ridge=ridge), 5, 1e2)


LAYOUTS = {
    "no batch": lambda A: A[0, 0],
    "one": lambda A: A[0, :1],
    "two batch dimensions": lambda A: A,
    "transposed": lambda A: A.mT,
    "batch innermost": lambda A: A.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1),
    "strided": lambda A: torch.cat([A, A], -1)[..., : A.shape[-1]],
    "expanded": lambda A: A[:, :1].expand(A.shape),
}


@every_pair
@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_and_layouts(pair, dtype, layout, step_by_step):
    A = LAYOUTS[layout](wishart(2, 3, 24, dtype=dtype))
    plain = A.clone(memory_format=torch.contiguous_format)
    kappa = torch.linalg.cond(plain).max().item()
    assert_agree(values_and_gradient(pair, "both", A), step_by_step(pair, "both", plain), 5, kappa)


@every_pair
@every_dtype
def test_only_the_symmetric_part_is_seen(pair, dtype):
    """Bit for bit, with entries on a grid on which adding the skew part does not round."""
    A = (wishart(3, 24) * 2**16).round().to(dtype) / 2**16
    K = torch.triu(torch.ones(24, 24, dtype=dtype), 1)
    assert torch.equal(2 * A, (A + K - K.mT) + (A + K - K.mT).mT)
    weights = random_like(A), random_like(A, 2)
    expected = values_and_gradient(pair, "both", A, weights, ridge=0.1)
    found = values_and_gradient(pair, "both", A + K - K.mT, weights, ridge=0.1)
    for left, right in zip(found, expected, strict=True):
        assert torch.equal(left, right)
        assert torch.equal(left, left.mT)


# --- higher derivatives --------------------------------------------------------------------------


@every_pair
@pytest.mark.parametrize("function", ["sqrtm", "invsqrtm", "both"])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_second_derivatives(pair, function, ridge):
    A = (20 * wishart(1, 4, samples=12)).requires_grad_()  # not of size one, so that the scaling counts
    assert torch.autograd.gradcheck(lambda X: evaluate(pair, function, X, ridge=ridge), A)
    assert torch.autograd.gradgradcheck(lambda X: evaluate(pair, function, X, ridge=ridge), A)


@every_pair
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_batched_gradients_equal_the_loop(pair, ridge):
    """Also of a zero, a NaN and a very large matrix, which go through ordinary operations."""
    A = 20 * wishart(5, 4)
    A[1], A[2, 0, 1], A[3] = 0, torch.nan, 1e300 * A[3]
    A.requires_grad_()
    outputs = evaluate(pair, "both", A, ridge=ridge)
    Gs = [torch.stack([random_like(A.detach(), 3 * k + j) for j in range(3)]) for k in range(2)]
    for used in ([0], [1], [0, 1]):
        picked, upstream = [outputs[k] for k in used], [Gs[k] for k in used]
        loop = [torch.autograd.grad(picked, A, [G[j] for G in upstream], retain_graph=True)[0] for j in range(3)]
        (batched,) = torch.autograd.grad(picked, A, upstream, is_grads_batched=True, retain_graph=True)
        assert torch.isnan(batched[:, 2]).all()
        # Rounding of well-conditioned solves.
        torch.testing.assert_close(batched, torch.stack(loop), rtol=1e-10, atol=1e-12, equal_nan=True)


@every_pair
def test_vectorised_jacobian_and_hessian(pair):
    A = 20 * wishart(2, 4)

    def loss(X):
        return sum(output.square().sum() for output in evaluate(pair, "both", X, ridge=0.1))

    for take, function in ((jacobian, lambda X: tuple(evaluate(pair, "both", X, ridge=0.1))), (hessian, loss)):
        # Rounding of well-conditioned solves.
        torch.testing.assert_close(take(function, A, vectorize=True), take(function, A), rtol=1e-9, atol=1e-10)


# --- longer schedules for ill-conditioned matrices -----------------------------------------------


def deceptive(n, kappa, dtype):
    """A Wishart matrix whose smallest eigenvalue is made tiny, which its moments do not show."""
    values, vectors = torch.linalg.eigh(wishart(n))
    values[0] = values[-1] / kappa
    A = (vectors * values) @ vectors.mT
    return (0.5 * (A + A.mT)).to(dtype)


def products(A):
    with matroot.count_operations(matrices=1) as counts:
        matroot.roots(A, "minimax")
    return counts.products


@needs_compiled_code
@every_dtype
@pytest.mark.parametrize("n", [8, 64])
@pytest.mark.parametrize("kappa", [1e2, 1e4, 1e6])
def test_a_schedule_too_short_is_followed_by_a_longer_one(n, kappa, dtype):
    """The rounding floor of the coupled iteration is reached, as in test_minimax.py."""
    typical, difficult = wishart(n, dtype=dtype), deceptive(n, kappa, dtype)
    assert products(difficult) > products(typical) + 11  # the schedule that failed, then one that is no shorter
    S, R = matroot.roots(difficult, "minimax")
    eps = torch.finfo(dtype).eps
    assert error(S, exact_root(difficult)) < 10 * eps * kappa**0.75
    assert error(R, exact_inverse_root(difficult)) < 10 * eps * kappa


@every_dtype
@pytest.mark.parametrize("gradient", ["smith", "krylov"])
def test_ill_conditioned_neighbours_change_nothing(gradient, dtype):
    typical = wishart(5, 24, dtype=dtype)
    batch = torch.cat([typical, deceptive(24, 1e4, dtype)[None]])
    weights = random_like(batch), random_like(batch, 2)
    together = values_and_gradient(f"minimax/{gradient}", "both", batch, weights)
    alone = values_and_gradient(f"minimax/{gradient}", "both", typical, [w[:5] for w in weights])
    roots, solve = computed_by(batch, *NAMED[f"minimax/{gradient}"])
    for left, right, backend in zip(together, alone, (roots, roots, solve), strict=True):
        assert_same(left[:5], right, backend, condition(typical))


# --- laws ----------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """A function with its power, a matrix, an upstream gradient and a generator for more."""
    n, decades, scale = draw(st.integers(2, 40)), draw(st.floats(0, 4)), draw(st.floats(-30, 30))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    values = 10 ** (scale - decades * torch.rand(n, dtype=torch.float64, generator=generator))
    A = with_eigenvalues(values, generator.initial_seed())
    G = torch.randn(n, n, dtype=torch.float64, generator=generator)
    return draw(st.sampled_from([0.5, -0.5])), A, G + G.mT, generator


def both_ways(power, A, G):
    """Value and gradient."""
    A = A.clone().requires_grad_()
    value = (matroot.sqrtm if power > 0 else matroot.invsqrtm)(A, "minimax", gradient="smith")
    return value.detach(), torch.autograd.grad(value, A, G)[0]


def assert_law(found, expected, A):
    """To a multiple of eps kappa; the multiple grows like sqrt(n), to 11 in 600 random problems."""
    assert_agree(found, expected, 50, torch.linalg.cond(A).item())


@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(-20, 20))
def test_scale(problem, exponent):
    power, A, G, _ = problem
    value, gradient = both_ways(power, A, G)
    c = 10**exponent
    assert_law(both_ways(power, c * A, G), (c**power * value, c ** (power - 1) * gradient), A)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_rotation_and_permutation(problem):
    power, A, G, generator = problem
    permutation = torch.eye(len(A), dtype=A.dtype)[torch.randperm(len(A), generator=generator)]
    for Q in (orthogonal(len(A), generator.initial_seed() + 1), permutation):
        rotated = [Q @ X @ Q.mT for X in both_ways(power, A, G)]
        assert_law(both_ways(power, Q @ A @ Q.mT, Q @ G @ Q.mT), rotated, A)


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(1, 30))
def test_blocks(problem, m):
    power, A, G, generator = problem
    B = with_eigenvalues(torch.linalg.eigvalsh(A)[-1] * (0.01 + torch.rand(m, generator=generator)), 3)
    H = random_like(B)
    apart = [torch.block_diag(X, Y) for X, Y in zip(both_ways(power, A, G), both_ways(power, B, H), strict=True)]
    both = torch.block_diag(A, B)
    assert_law(both_ways(power, both, torch.block_diag(G, H)), apart, both)
