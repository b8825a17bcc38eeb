"""The private parts of PyTorch we look at are still there and still mean what we think."""

import pytest
import torch

from matroot._tracing import compiling, derivative_order, exporting, is_host_readable, needs_grad, transforming


def test_transforming():
    seen = []

    def look(x):
        seen.append(transforming())
        return x.sum()

    look(torch.ones(2))
    torch.func.grad(look)(torch.ones(2))
    torch.func.vmap(look)(torch.ones(2, 2))
    torch.func.jvp(look, (torch.ones(2),), (torch.ones(2),))
    assert seen == [False, True, True, True]


def test_needs_grad():
    plain, tracked = torch.ones(2), torch.ones(2, requires_grad=True)
    assert not needs_grad(plain)
    assert needs_grad(plain, tracked)
    with torch.no_grad():
        assert not needs_grad(tracked)
    with torch.autograd.forward_ad.dual_level():
        assert needs_grad(plain)


def test_is_host_readable():
    x = torch.ones(2)
    assert is_host_readable(x)
    assert not is_host_readable(x.to("meta"))
    seen = []
    torch.func.vmap(lambda y: seen.append(is_host_readable(y)) or y)(torch.ones(2, 2))
    assert seen == [False]


def test_batched_gradients_are_not_host_readable():
    seen = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(is_host_readable(g))
            return g

    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(Spy.apply(x), x, torch.eye(2), is_grads_batched=True)
    assert seen == [False]


def test_compiling():
    compiled = torch.compile(lambda x: x + (1 if compiling() else 2), backend="eager", fullgraph=True)
    assert compiled(torch.zeros(())) == 1
    assert not compiling()


@pytest.mark.parametrize("strict", [True, False])
def test_exporting(strict):
    """True in a graph that runs without us, not in one that ``torch.compile`` makes."""

    class Look(torch.nn.Module):
        def forward(self, x):
            return x + (1 if exporting() else 2)

    look = Look()
    x = torch.zeros(3)
    assert look(x)[0] == torch.compile(look, backend="eager", fullgraph=True)(x)[0] == 2
    assert torch.export.export(look, (x,), strict=strict).module()(x)[0] == 1


def test_derivative_order():
    seen = []

    def look(x):
        seen.append(derivative_order())
        return x.sum()

    look(torch.ones(2))
    torch.func.vmap(torch.func.grad(look))(torch.ones(2, 2))
    torch.func.hessian(look)(torch.ones(2))
    torch.func.jacrev(torch.func.jacrev(torch.func.jacfwd(look)))(torch.ones(2))
    assert seen == [0, 1, 2, 3]
