"""``torch.compile`` on a GPU calls the kernels."""

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import matroot

from ..matrices import error, random_like, wishart


def value_and_gradient(function, A, G):
    X = A.clone().requires_grad_()
    value = function(X)
    (gradient,) = torch.autograd.grad(value, X, G)
    return value.detach().clone(), gradient.clone()


@pytest.mark.parametrize("n", [32, 100, 256])
@pytest.mark.parametrize("method", ["auto", "minimax"])
def test_compiled_code_calls_the_kernels(n, method):
    torch._dynamo.reset()
    A = wishart(6, n, dtype=torch.float32).cuda()
    G = random_like(wishart(6, n, dtype=torch.float32)).cuda()
    seen = []

    def look(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    def root(X):
        return matroot.sqrtm(X, method)

    compiled = torch.compile(root, backend=aot_autograd(fw_compiler=look, bw_compiler=look), fullgraph=True)
    expected = value_and_gradient(root, A, G)
    for found, true in zip(value_and_gradient(compiled, A, G), expected, strict=True):
        assert error(found, true.double()) < 1e-5  # a cotangent that is not used is None or zeros
    assert {"matroot.minimax_roots.default", "matroot.smith_solve.default"} <= set(seen)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_inductor(mode):
    torch._dynamo.reset()
    A = wishart(6, 48, dtype=torch.float32).cuda()
    G = random_like(wishart(6, 48, dtype=torch.float32)).cuda()

    def whitened(X):
        return 2 * matroot.invsqrtm(X, ridge=1e-3)

    compiled = torch.compile(whitened, mode=mode, fullgraph=True)
    expected = value_and_gradient(whitened, A, G)
    for _ in range(3):  # the first calls warm up and capture
        found = value_and_gradient(compiled, A, G)
    for a, b in zip(found, expected, strict=True):
        assert error(a, b.double()) < 1e-5
