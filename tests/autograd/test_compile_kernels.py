"""The way from ``torch.compile`` to GPU kernels, without a GPU: the operators it records are there on the CPU too."""

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import matroot
from matroot.backends.triton import minimax
from matroot.backends.triton.backend import Triton

from ..installation import needs_compiled_code
from ..matrices import exact_gradient, exact_root, wishart


@needs_compiled_code
@pytest.mark.parametrize("method", ["auto", "minimax"])
def test_one_graph_with_both_operators(method, monkeypatch):
    """Nothing on the way is refused by the compiler or needs a warning, and the plan is that of eager code."""
    monkeypatch.setattr(Triton, "device_type", "cpu")
    monkeypatch.setattr(minimax, "_unavailable_reason", lambda device: None)
    torch._dynamo.reset()
    A, seen = wishart(4, 12, dtype=torch.float32), []

    def record(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=record, bw_compiler=record)
    compiled = torch.compile(lambda X: matroot.sqrtm(X, method), backend=backend, fullgraph=True)
    X = A.clone().requires_grad_()
    S = compiled(X)
    (gradient,) = torch.autograd.grad(S, X, torch.ones_like(S))
    assert [name for name in seen if "matroot" in name] == [
        "matroot.minimax_roots.default",
        "matroot.smith_solve.default",
    ]
    eps, condition = torch.finfo(A.dtype).eps, torch.linalg.cond(A).max().item()
    torch.testing.assert_close(S.detach().double(), exact_root(A), rtol=0, atol=10 * eps * condition)
    true = exact_gradient(A, torch.ones_like(S))
    torch.testing.assert_close(gradient.double(), true, rtol=0, atol=10 * eps * condition * true.abs().max().item())
