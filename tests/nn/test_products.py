"""Symmetric products of features: values and derivatives are those of plain products, with fewer of them."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.utils.flop_counter import FlopCounterMode

from matroot.bench.problems import normal, symmetric
from matroot.nn._products import congruence, scatter

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
