"""``torch.fx.symbolic_trace``: calls of the library are nodes of the graph."""

import copy
import inspect

import pytest
import torch
from torch import fx, nn

import matroot

from .matrices import wishart

LAYERS = {
    "DecorrelatedBatchNorm": (matroot.nn.DecorrelatedBatchNorm2d(6, group_size=3), (4, 6, 5, 5)),
    "ZCAWhitening": (matroot.nn.ZCAWhitening(6), (30, 6)),
    "CovariancePool": (matroot.nn.CovariancePool(6, reduce_to=4), (4, 6, 5, 5)),
    "TemporalCovariancePool": (matroot.nn.TemporalCovariancePool(), (2, 3, 6, 5, 5)),
    "TemporalAttention": (matroot.nn.TemporalAttention(6), (2, 6, 3, 5, 5)),
    "WhitenColor": (matroot.nn.WhitenColor(), (4, 6, 5, 5)),
    "SecondOrderHead": (matroot.nn.SecondOrderHead(6, 3, 4), (4, 9, 6)),
}


class Inside(nn.Module):
    """A network with one of the layers."""

    def __init__(self, layer):
        super().__init__()
        self.layer = copy.deepcopy(layer)

    def forward(self, x):
        y = 2 * x
        return self.layer(y, style=x) if isinstance(self.layer, matroot.nn.WhitenColor) else self.layer(y)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_a_module_of_the_graph(name):
    """As a call: results, gradients, and what a layer keeps of its batches."""
    layer, shape = LAYERS[name]
    torch.manual_seed(0)
    x = torch.randn(shape)
    net = Inside(layer)
    traced = fx.symbolic_trace(copy.deepcopy(net))
    assert [node.target for node in traced.graph.nodes if node.op == "call_module"] == ["layer"]
    for training in (True, False):
        results = []
        for one in (net.train(training), traced.train(training)):
            if name == "ZCAWhitening" and training:
                one.layer.fit(x)
            X = x.clone().requires_grad_()
            y = one(X)
            y.square().sum().backward()
            results.append((y, X.grad))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    for one, other in zip(net.buffers(), traced.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_functions_are_nodes():
    """With every kind of argument: methods and gradients are objects of the graph too."""

    def program(A, x):
        S, R = matroot.roots(A=A, method=matroot.Pade(degree=6), gradient=matroot.Lyapunov(iterations=9), ridge=1e-3)
        T = matroot.sqrtm(S, "minimax", check=True) + matroot.invsqrtm(R)
        C = matroot.nn.covariance(x, eps=1e-3)
        v = matroot.nn.untriangle(matroot.nn.triangle(C))
        style = matroot.nn.coloring(x + 1)
        return T, v, matroot.nn.whiten_color(x, style, alpha=0.5)

    A, x = wishart(3, 5), torch.randn(3, 5, 20)
    traced = fx.symbolic_trace(program)
    calls = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    functions = ("roots", "sqrtm", "invsqrtm", "covariance", "triangle", "untriangle", "coloring", "whiten_color")
    assert {getattr(matroot, name, None) or getattr(matroot.nn, name) for name in functions} <= {*calls}
    for one, other in zip(program(A, x), traced(A, x), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    with pytest.raises(ValueError, match="A is indefinite"):  # checked when the graph runs
        fx.symbolic_trace(lambda A: matroot.sqrtm(A, check=True))(-A)


def test_signatures_stay():
    assert [*inspect.signature(matroot.sqrtm).parameters][:3] == ["A", "method", "gradient"]
    assert [*inspect.signature(matroot.nn.CovariancePool.forward).parameters] == ["self", "x"]


@pytest.mark.parametrize("name", ["resnet18_dbn", "resnet18_gcp"])
def test_torchvision_extracts_features(name):
    models = pytest.importorskip("matroot.models")
    from torchvision.models.feature_extraction import create_feature_extractor

    model = models.create(name, num_classes=3).eval()
    features = create_feature_extractor(model, ["bn1", "fc"])
    x = torch.randn(2, 3, 32, 32)
    found = features(x)
    torch.testing.assert_close(found["fc"], model(x), rtol=0, atol=0)
    # A ReLU that works in place follows.
    torch.testing.assert_close(found["bn1"], model.bn1(model.conv1(x)).relu(), rtol=0, atol=0)
