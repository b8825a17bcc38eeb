"""Symmetric products of features: values and derivatives are those of plain products, with fewer of them."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.utils.flop_counter import FlopCounterMode

from matroot.bench.problems import normal, symmetric
from matroot.nn._products import congruence, half_scatter, scatter

Y, R = normal(2, 5, 3, seed=0), symmetric(2, 3)


def symmetric_congruence(Y, R):
    """Of the symmetric part of ``R``: perturbations are not symmetric."""
    return congruence(Y, 0.5 * (R + R.mT))


FUNCTIONS = {
    "scatter": (scatter, lambda X: X @ X.mT, (Y,)),
    "congruence": (symmetric_congruence, lambda Y, R: Y @ (0.5 * (R + R.mT)) @ Y.mT, (Y, R)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    function, plain, arguments = FUNCTIONS[name]
    arguments = tuple(argument.clone().requires_grad_() for argument in arguments)
    assert torch.equal(function(*arguments), plain(*arguments))
    assert gradcheck(function, arguments)
    assert gradgradcheck(function, arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_and_forward_mode(name):
    function, plain, arguments = FUNCTIONS[name]
    everything = tuple(range(len(arguments)))
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        found, true = (transform(f, everything)(*arguments) for f in (function, plain))
        torch.testing.assert_close(found, true)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(argument, argument) for argument in arguments]
        found, true = (forward_ad.unpack_dual(f(*duals)).tangent for f in (function, plain))
        torch.testing.assert_close(found, true)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fewer_products_than_autograd_takes(name):
    """For a scatter half of them, for a congruence three of four."""
    flops = []
    for function in FUNCTIONS[name][:2]:
        value = function(*(argument.clone().requires_grad_() for argument in FUNCTIONS[name][2]))
        with FlopCounterMode(display=False) as counter:
            value.backward(torch.ones_like(value))
        flops.append(counter.get_total_flops())
    assert flops[0] <= 0.75 * flops[1]


def test_gradients_inside_autocast_are_in_full_precision():
    X = normal(2, 5, 3, seed=0).float().requires_grad_()
    G = normal(2, 5, 5, seed=1).float()
    (true,) = torch.autograd.grad(scatter(X), X, G)
    with torch.autocast("cpu", torch.bfloat16, enabled=False):
        value = scatter(X)
    with torch.autocast("cpu", torch.bfloat16):
        (found,) = torch.autograd.grad(value, X, G)
    assert torch.equal(found, true)


# --- of half precision on CUDA, where torch multiplies halves with a result in float32 ---------------------------

X = normal(2, 5, 7, seed=0).half()


def in_float32(X):
    wide = X.float()
    return wide @ wide.mT


@pytest.fixture
def products_of_halves(monkeypatch):
    monkeypatch.setattr(torch, "bmm", lambda X, Y, out_dtype: X.to(out_dtype) @ Y.to(out_dtype))


def test_half_precision_in_transforms_and_forward_mode():
    weights = normal(2, 5, 5, seed=1).float()
    transforms = {
        "grad": lambda f: torch.func.grad(lambda X: (weights * f(X)).sum())(X),
        "vmap": lambda f: torch.func.vmap(f)(torch.stack([X, 2 * X])),
        "jvp": lambda f: torch.func.jvp(f, (X,), (X,))[1],
        "hessian": lambda f: torch.func.hessian(lambda X: f(X).square().sum())(X[:, :2, :2]),
    }
    for transform in transforms.values():
        torch.testing.assert_close(transform(half_scatter), transform(in_float32))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, X)
        found, true = (forward_ad.unpack_dual(f(dual)).tangent for f in (half_scatter, in_float32))
        torch.testing.assert_close(found, true)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("scale", "size"), [(1e-7, 1e4), (1e-2, 1.0), (1e6, 1e-4), (0.0, 1.0)])
def test_half_precision_gradients_have_the_range_of_the_result(dtype, scale, size, products_of_halves):
    """They are representable where those with respect to the product are not; each factor is rounded once."""
    x = (size * X).to(dtype).requires_grad_()
    G = scale * normal(2, 5, 5, seed=1).float()
    (found,) = torch.autograd.grad(half_scatter(x), x, G)
    (true,) = torch.autograd.grad(in_float32(x), x, G)
    assert found.dtype == dtype
    error = (found.float() - true.float()).norm(dim=(-2, -1))
    assert (error <= 4 * torch.finfo(dtype).eps * true.float().norm(dim=(-2, -1))).all()


def test_half_precision_gradients_of_a_nan_stay_in_its_group(products_of_halves):
    x, G = X.clone().requires_grad_(), torch.ones(2, 5, 5)
    G[0, 1, 2] = float("nan")
    (found,) = torch.autograd.grad(half_scatter(x), x, G)
    assert found[0].isnan().any()
    assert found[1].isfinite().all()


def test_half_precision_second_and_batched_derivatives(products_of_halves):
    G = normal(2, 5, 5, seed=1).float()
    found = []
    for function in (half_scatter, in_float32):
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
        second = torch.autograd.grad(gradient.float().square().sum() / 100, x)[0]
        batched = torch.autograd.grad(function(x), x, torch.stack([G, 2 * G]), is_grads_batched=True)[0]
        found.append((second, batched))
    for ours, true in zip(*found, strict=True):
        assert (ours - true).float().norm() <= 8 * torch.finfo(torch.half).eps * true.float().norm()
