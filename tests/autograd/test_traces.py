"""``torch.jit.trace`` and the ONNX exporter built on it record ordinary operations."""

import io
import warnings

import pytest
import torch
from torch import nn

import matroot

from ..matrices import error, exact_gradient, exact_root, wishart

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch.jit itself, which is deprecated


class Root(nn.Module):
    def __init__(self, method: str):
        super().__init__()
        self.method, self.factor = method, nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, A):
        return matroot.sqrtm(self.factor * A, self.method)


@pytest.mark.parametrize("method", ["auto", "eigen", "minimax"])
def test_a_trace_computes_from_its_input(method):
    """With another input than the one it was made with, and with the gradient rule of the method."""
    trace = torch.jit.trace(Root(method), (wishart(3, 6, seed=1),))
    assert not any("PythonOp" in node.kind() for node in trace.inlined_graph.nodes())
    A = wishart(3, 6).requires_grad_()
    S = trace(A)
    (gradient,) = torch.autograd.grad(S, A, torch.ones_like(S))
    eps = torch.finfo(torch.float64).eps
    condition = torch.linalg.cond(A.detach()).max().item()
    assert error(S.detach(), exact_root(A.detach())) < 50 * eps * condition**0.5
    assert error(gradient, exact_gradient(A.detach(), torch.ones_like(S))) < 200 * eps * condition


def test_a_trace_keeps_the_gradient_at_repeated_eigenvalues():
    """Differentiating ``eigh`` itself would give NaN."""
    trace = torch.jit.trace(Root("eigen"), (wishart(3, 6),))
    A = torch.eye(6, dtype=torch.float64).expand(3, 6, 6).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(trace(A).sum(), A)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 0.5))


@pytest.mark.parametrize("method", ["auto", "eigen", "pade", "newton-schulz"])
def test_a_trace_warns_of_nothing(method):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.jit.trace(Root(method), (wishart(3, 6),))
    assert not [str(warning.message) for warning in found if warning.category is torch.jit.TracerWarning]


def test_a_trace_refuses_what_is_not_square():
    with pytest.raises(ValueError, match="A must have shape"):
        torch.jit.trace(Root("auto"), (torch.ones(3, 6, 1),))


def test_the_exporter_built_on_traces_refuses_by_name():
    """It lacks operators that the exporter of ``torch.export`` has, and says which."""
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="Exporting the operator"):
        torch.onnx.export(Root("newton-schulz").float(), (torch.eye(5),), io.BytesIO(), dynamo=False)
