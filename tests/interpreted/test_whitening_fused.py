"""Decorrelated batch normalisation in fused kernels, under Triton's interpreter.

The layer in half precision is compared with itself in double precision, on the same features: the difference is the
rounding of float32, and of results stored in half precision, which the interpreter truncates.
"""

import copy

import pytest
import torch
import torch.distributed as dist
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import checkpoint

from matroot.backends.triton.whitening import launch as whitening
from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d, _whitening_fused
from matroot.nn import _whitening_ops as ops

from ..matrices import error
from ..nn.correlated import correlated
from ..nn.ranks import on_ranks

HALF = torch.finfo(torch.half).eps
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of NaN and Inf, on purpose


def use_kernels():
    whitening.available = lambda device: True


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    monkeypatch.setattr(whitening, "available", lambda device: True)


def layer_of(channels=6, cls=DecorrelatedBatchNorm2d, **options):
    layer = cls(channels, **{"eps": 1e-2, **options})
    if layer.affine:
        with torch.no_grad():
            layer.weight.copy_(torch.linspace(0.5, 2, channels))
            layer.bias.copy_(torch.linspace(-1, 1, channels))
    return layer


def features(*shape, dtype=torch.half, **options):
    x = correlated(*shape, mean=3.0, **options).to(dtype)
    return x.to(memory_format=torch.channels_last) if x.ndim == 4 else x


def results(layer, x, g):
    """Output, gradients with respect to x and the parameters, and running statistics, in double precision."""
    X = x.detach().clone().requires_grad_()
    y = layer(X)
    found = [y, *torch.autograd.grad(y, (X, *layer.parameters()), g.to(y.dtype))]
    return [tensor.detach().double() for tensor in (*found, *layer.buffers())]


def assert_same(found, expected, tolerance=4 * HALF):
    for ours, true in zip(found, expected, strict=True):
        assert error(ours.flatten()[None], true.flatten()[None]) < tolerance


def is_supported(x, layer):
    return _whitening_fused.is_supported(x, layer.groups)


@pytest.mark.parametrize("options", [{}, {"groups": 2, "track": "covariance"}, {"affine": False, "momentum": None}])
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_as_in_double_precision(options, dtype):
    layer, x, g = layer_of(**options), features(4, 6, 5, 7, dtype=dtype), features(4, 6, 5, 7, seed=1, dtype=dtype)
    assert is_supported(x, layer)
    expected = results(copy.deepcopy(layer).double(), x.double(), g)
    assert_same(results(layer, x, g), expected, 4 * torch.finfo(dtype).eps)
    y = layer(x)
    assert y.dtype == dtype
    assert y.stride() == x.stride()
    # Without a gradient too, and for a gradient in another layout.
    with torch.no_grad():
        assert torch.equal(layer(x), y)
    assert_same(results(layer_of(**options), x, g.contiguous()), expected, 4 * torch.finfo(dtype).eps)


def test_parameters_of_any_dtype():
    x, g = features(40, 6), features(40, 6, seed=1)
    expected = results(layer_of(cls=DecorrelatedBatchNorm1d).double(), x.double(), g)
    for dtype in (torch.half, torch.double):
        assert_same(results(layer_of(cls=DecorrelatedBatchNorm1d).to(dtype), x, g), expected)


@pytest.mark.parametrize("part", ["column", "one number", "negative"])
def test_parameters_that_are_parts_of_others(part):
    parts = {
        "column": lambda: torch.linspace(0.5, 2, 12).view(6, 2)[:, 1],
        "one number": lambda: torch.tensor([1.5]).expand(6),
        "negative": lambda: torch._neg_view(torch.linspace(0.5, 2, 6)),
    }
    layer, x, g = layer_of(groups=2), features(4, 6, 5, 7), features(4, 6, 5, 7, seed=1)
    found = []
    for parameter in (parts[part](), parts[part]().clone().resolve_neg().contiguous()):
        X, weight, bias = x.clone().requires_grad_(), parameter.requires_grad_(), parameter.detach().requires_grad_()
        y = torch.func.functional_call(layer, {"weight": weight, "bias": bias}, X)
        found.append((y, *torch.autograd.grad(y, (X, weight, bias), g)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_only_what_is_needed():
    """Features that need no gradient, frozen parameters, two backward passes."""
    layer, x = layer_of(), features(4, 6, 5, 7)
    _, _, *expected = results(copy.deepcopy(layer), x, torch.ones_like(x))[:4]
    y = layer(x)
    for retain in (True, False):
        found = torch.autograd.grad(y.sum(), tuple(layer.parameters()), retain_graph=retain)
        assert_same([tensor.double() for tensor in found], expected)
    layer.requires_grad_(False)
    X = x.clone().requires_grad_()
    y, g = layer(X), features(4, 6, 5, 7, seed=1)
    first, second = (torch.autograd.grad(y, X, g, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert layer(x).requires_grad is False


def test_in_a_network():
    """The backward pass accepts an output and running statistics that were changed in place since."""
    layer = layer_of()
    x = features(4, 6, 5, 7).requires_grad_()
    nn.Sequential(layer, nn.ReLU(inplace=True), copy.deepcopy(layer))(x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("track", ["whitening", "covariance"])
def test_bad_batches_leave_the_running_statistics(track):
    layer = layer_of(groups=2, track=track, momentum=None)
    before = copy.deepcopy(layer.state_dict())
    x = features(4, 6, 5, 7)
    for bad in (float("nan"), float("inf")):
        nonfinite = x.clone()
        nonfinite[0, 0, 0, 0] = bad
        y = layer(nonfinite)
        assert torch.isnan(y[:, :3]).all()
        assert torch.isfinite(y[:, 3:]).all()
    layer(x[:1, :, :1, :1])
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])
    layer(x)
    assert layer.num_batches_tracked == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_runs_the_layer_twice(reentrant):
    layer, x, g = layer_of(), features(4, 6, 5, 7), features(4, 6, 5, 7, seed=1)
    expected = results(copy.deepcopy(layer), x, g)[:4]
    x.requires_grad_()
    y = checkpoint(layer, x, use_reentrant=reentrant)
    y.backward(g)
    found = [tensor.detach().double() for tensor in (y, x.grad, layer.weight.grad, layer.bias.grad)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert layer.num_batches_tracked == 2


def test_second_derivatives():
    layer, x = layer_of(), features(4, 6, 5, 7)
    found = []
    for dtype in (torch.half, torch.double):
        X = x.to(dtype).requires_grad_()
        own = copy.deepcopy(layer).to(torch.promote_types(dtype, torch.float32))
        (gradient,) = torch.autograd.grad(own(X).square().sum() / 100, X, create_graph=True)
        # With respect to the weight: with respect to x that of a white output nearly cancels.
        found.append([torch.autograd.grad(gradient.square().sum(), own.weight)[0].double()])
        assert own.num_batches_tracked == 1
    assert_same(*found, 0.02)


def test_batched_gradients():
    layer, x = layer_of(), features(2, 6, 2, 3).requires_grad_()
    y = layer(x)
    G = torch.stack([features(2, 6, 2, 3, seed=seed) for seed in (1, 2)])
    (together,) = torch.autograd.grad(y, x, G, is_grads_batched=True, retain_graph=True)
    for g, found in zip(G, together, strict=True):
        (alone,) = torch.autograd.grad(y, x, g, retain_graph=True)
        assert_same([found.double()], [alone.double()])


def test_other_derivatives_take_torch_operations():
    layer, x = layer_of(momentum=0.0), features(4, 6, 5, 7)
    tangent = features(4, 6, 5, 7, seed=1)
    with torch.autograd.forward_ad.dual_level():
        assert not is_supported(torch.autograd.forward_ad.make_dual(x, tangent), layer)
    supported = []
    torch.func.grad(lambda x: (supported.append(is_supported(x, layer)), x.sum())[1])(x)
    assert supported == [False]


# --- over ranks ----------------------------------------------------------------------------------


def _every_batch(rank, world):
    use_kernels()
    for sizes in ((3, 5), (0, 4), (1, 1)):
        for same in (True, False):
            _train(rank, sizes, same)


def _train(rank, sizes, same_layout):
    """Each rank's results are its part of those of one process; ranks of another layout take torch operations."""
    shape = (sum(sizes), 6, 3, 4)
    x, g = features(*shape), features(*shape, seed=1)
    expected = results(layer_of(groups=2).double(), x.double(), g)
    layer = layer_of(groups=2, process_group="world")
    own = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    part = x[own] if same_layout or rank else x[own].contiguous()
    assert is_supported(part, layer) == (sizes[rank] > 0 and (same_layout or rank > 0))
    y, grad_x, grad_weight, grad_bias, *running = results(layer, part, g[own])
    for gradient in (grad_weight, grad_bias):
        dist.all_reduce(gradient)
    if sizes[rank]:
        assert_same([y, grad_x], [expected[0][own], expected[1][own]])
    assert_same([grad_weight, grad_bias, *running], expected[2:])


def test_ranks_together_are_one_process(tmp_path):
    on_ranks(_every_batch, 2, tmp_path)


# --- torch.compile -------------------------------------------------------------------------------


def traced(layer):
    """The layer in compiled code, and the names of this library's operators that it calls."""
    called = set()

    def look(graph, inputs):
        targets = [str(node.target).split(".") for node in graph.graph.nodes]
        called.update(target[1] for target in targets if target[0] == "matroot")
        return make_boxed_func(graph.forward)

    torch.compiler.reset()
    return torch.compile(layer, backend=aot_autograd(fw_compiler=look, bw_compiler=look), fullgraph=True), called


FORWARD = {"whitening_statistics", "minimax_roots", "whitening_transform"}
BACKWARD = {"whitening_gradients", "smith_solve", "whitening_vjp"}


@pytest.mark.parametrize(
    "options", [{}, {"groups": 2, "track": "covariance"}, {"affine": False, "momentum": None}, {"method": "minimax"}]
)
def test_compiled_code_calls_the_kernels(options):
    x, g = features(4, 6, 5, 7), features(4, 6, 5, 7, seed=1)
    expected = results(layer_of(**options), x, g)
    layer = layer_of(**options)
    compiled, called = traced(layer)
    X = x.clone().requires_grad_()
    y = compiled(X)
    assert y.stride() == x.stride()
    found = [y, *torch.autograd.grad(y, (X, *layer.parameters()), g), *layer.buffers()]
    assert_same([tensor.detach().double() for tensor in found], expected, 1e-6)
    assert called == FORWARD | BACKWARD


@pytest.mark.parametrize("features_only", [True, False])
def test_compiled_code_computes_what_is_needed(features_only):
    layer, x = layer_of(), features(4, 6, 5, 7)
    expected = results(copy.deepcopy(layer), x, torch.ones_like(x))[1:4]
    compiled, called = traced(layer.requires_grad_(not features_only))
    y = compiled(x.requires_grad_(features_only))
    targets = (x,) if features_only else tuple(layer.parameters())
    found = torch.autograd.grad(y.sum(), targets)
    assert_same([tensor.double() for tensor in found], expected[:1] if features_only else expected[1:], 1e-6)
    assert called == FORWARD | (BACKWARD if features_only else {"whitening_gradients"})


def test_compiled_code_without_a_gradient():
    layer, x = layer_of(), features(4, 6, 5, 7)
    expected = copy.deepcopy(layer)(x)
    compiled, called = traced(layer.requires_grad_(False))
    assert torch.equal(compiled(x), expected)
    assert called == FORWARD


@pytest.mark.parametrize(("method", "layout"), [("eigen", "channels last"), ("auto", "contiguous")])
def test_what_compiled_code_leaves_to_torch_operations(method, layout):
    layer, x = layer_of(method=method), features(4, 6, 5, 7)
    x = x if layout == "channels last" else x.contiguous()
    expected = copy.deepcopy(layer)(x)
    compiled, called = traced(layer)
    assert_same([compiled(x).detach().double()], [expected.detach().double()])
    assert not {name for name in called if name.startswith("whitening")}


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
def test_operators(affine, channels_last):
    """Results have the shapes, dtypes and layouts that traces are told; arguments stay as they are."""
    x, g = features(4, 6, 5, 7), features(4, 6, 5, 7, seed=1)
    x = x if channels_last else x.contiguous()
    mean, _, W = ops.whitening_statistics(x, 2, 1e-2)
    weight = mean if affine else None
    for operator, arguments in (
        (ops.whitening_statistics, (x, 2, 1e-2)),
        (ops.whitening_transform, (x, mean, W, weight, weight)),
        (ops.whitening_gradients, (g, x, mean, W, weight)),
        (ops.whitening_vjp, (g, x, mean, W, weight, W, mean)),
    ):
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))
