"""Decorrelated batch normalisation in fused kernels on a GPU: accurate, reproducible, without synchronisation."""

import copy

import pytest
import torch

from matroot.backends.triton.whitening import launch as whitening
from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d
from matroot.nn._whitening_fused import is_supported

from ..matrices import error
from .graphs import assert_graph_repeats

SHAPE = (16, 64, 17, 9)


def layer_of(channels=64, **options):
    layer = DecorrelatedBatchNorm2d(channels, device="cuda", **{"eps": 1e-2, **options})
    if layer.affine:
        with torch.no_grad():
            layer.weight.uniform_(0.5, 2)
            layer.bias.normal_()
    return layer


def features(*shape, dtype=torch.bfloat16, mean=0.5, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn(shape, generator=generator, device="cuda") + mean
    return x.to(dtype).to(memory_format=torch.channels_last)


def results(layer, x, g):
    """Output, gradients with respect to x and the parameters, and running statistics."""
    X = x.detach().clone().requires_grad_()
    y = layer(X)
    return [y.detach(), *torch.autograd.grad(y, (X, *layer.parameters()), g.to(y.dtype)), *layer.buffers()]


def assert_same(found, expected, tolerance):
    for ours, true in zip(found, expected, strict=True):
        assert error(ours.double().flatten()[None], true.double().flatten()[None]) < tolerance


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("channels", "groups"), [(64, 1), (64, 4), (3, 1), (33, 1), (100, 1), (128, 1), (40, 40)])
@pytest.mark.parametrize("positions", [(3, 5, 7), (16, 17, 9), (32, 32, 32)])
def test_as_in_double_precision(positions, channels, groups, dtype):
    """Up to the rounding of factors and results."""
    shape = (positions[0], channels, *positions[1:])
    layer, x, g = (
        layer_of(channels, groups=groups),
        features(*shape, dtype=dtype),
        features(*shape, dtype=dtype, seed=1),
    )
    assert is_supported(x, groups)
    expected = results(copy.deepcopy(layer).double(), x.double(), g)
    found = results(layer, x, g)
    assert found[0].stride() == x.stride()
    assert_same(found, expected, 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("options", [{"affine": False}, {"groups": 2, "track": "covariance"}, {"momentum": None}])
def test_as_in_torch_operations(options, monkeypatch):
    layer, x, g = layer_of(**options), features(*SHAPE), features(*SHAPE, seed=1)
    other = copy.deepcopy(layer)
    found = results(layer, x, g)
    monkeypatch.setattr(whitening, "available", lambda device: False)
    assert_same(found, results(other, x, g), 6 * torch.finfo(torch.bfloat16).eps)


def test_vectors():
    x = torch.randn(500, 64, device="cuda").half()
    layer = DecorrelatedBatchNorm1d(64, device="cuda", eps=1e-2)
    assert is_supported(x, 1)
    assert error(layer(x).double(), copy.deepcopy(layer).double()(x.double())) < 2e-3


def test_a_large_mean_cancels_nowhere():
    """Of 200 deviations: features are known to one deviation then, and so is the output."""
    layer, x = layer_of(), features(*SHAPE, mean=200)
    expected = copy.deepcopy(layer).double()(x.double())
    y = layer(x)
    assert error(y.double().flatten()[None], expected.flatten()[None]) < 2 * torch.finfo(torch.bfloat16).eps
    # The mean of the output is that of the bias: no rounding error of a weight times 200.
    assert (y.double().mean((0, 2, 3)) - layer.bias).abs().max() < 1e-3


def test_factors_of_any_size():
    """Half precision has a short range, in which small gradients and large roots would be lost."""
    x = features(40, 16, 1, 1, dtype=torch.half, mean=0)
    mean, eye = torch.zeros(16, device="cuda"), torch.eye(16, device="cuda")[None]
    y = whitening.transform(2.0**-12 * x, mean, 2.0**20 * eye, None, None)
    assert error(y.double().flatten(1) / 2.0**8, (2.0**-12 * x).double().flatten(1) * 2.0**12) < 1e-6
    H = 2.0**-24 * torch.randn(1, 16, 16, device="cuda")
    grad_x = whitening.vjp(0 * x, 2.0**10 * x, mean, eye, None, H, None, mean)
    true = 2.0**10 * x.double().flatten(1) @ (H + H.mT)[0].double()
    assert error(grad_x.double().flatten(1), true) < 2 * torch.finfo(torch.half).eps


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_bad_batches_leave_the_running_statistics(bad):
    layer = layer_of(groups=2)
    before = copy.deepcopy(layer.state_dict())
    x = features(*SHAPE)
    x[0, 0, 0, 0] = bad
    y = layer(x)
    assert torch.isnan(y[:, :32]).all()
    assert torch.isfinite(y[:, 32:]).all()
    layer(features(1, 64, 1, 1))
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


def test_reproducible_in_a_cuda_graph_without_synchronisation():
    layer, x, g = layer_of(momentum=0.0), features(*SHAPE), features(*SHAPE, seed=1)
    x.requires_grad_()

    def step():
        y = layer(x)
        return y.detach(), *torch.autograd.grad(y, (x, *layer.parameters()), g)

    expected = step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        again = step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(a, b) for a, b in zip(again, expected, strict=True))
    assert_graph_repeats(step, expected)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_in_compiled_code(mode):
    torch.compiler.reset()
    layer, x, g = layer_of(), features(*SHAPE), features(*SHAPE, seed=1)
    other = copy.deepcopy(layer)
    compiled = torch.compile(layer, mode=mode, fullgraph=True)
    for _ in range(3):  # the first calls warm up and capture
        expected, X = results(other, x, g), x.clone().requires_grad_()
        y = compiled(X)
        assert y.stride() == x.stride()
        gradients = torch.autograd.grad(y, (X, *layer.parameters()), g)
        found = [tensor.detach().clone() for tensor in (y, *gradients, *layer.buffers())]
        assert_same(found, expected, 1e-5)


def test_few_kernels():
    """Four passes over the features, two reductions, two for the root, a dozen small ones for running statistics."""
    layer, x, g = layer_of(), features(*SHAPE).requires_grad_(), features(*SHAPE, seed=1)
    results(layer, x, g)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        y = layer(x)
        torch.autograd.grad(y, (x, *layer.parameters()), g)
    launched = {event.key: event.count for event in profile.key_averages()}
    assert launched["moments_kernel"] == launched["affine_kernel"] == 2
    assert launched["statistics_kernel"] == launched["gradients_kernel"] == 1
    assert sum(count for name, count in launched.items() if not name.startswith("cu")) <= 24
