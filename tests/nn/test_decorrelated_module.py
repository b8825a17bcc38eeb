"""Decorrelated batch normalisation as a module among PyTorch's: dtypes, layouts, copies, compilation."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import matroot
from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d

from .correlated import correlated
from .decorrelated_layers import (
    LAYERS,
    SINGLE,
    by_definition,
    close,
    every_layer,
    every_track,
    features,
    make,
    value_and_gradients,
)

# --- torch.func ----------------------------------------------------------------------------------


@every_track
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of vmap, for lerp_
def test_transforms_of_training_take_the_buffers_as_arguments(track):
    """Running statistics move as in a call without a transform; of several layers at once, as one after another."""
    layers, batches = [make(track=track) for _ in range(2)], [features(seed=seed) for seed in range(2)]
    weights = features(seed=2)

    def loss(x, parameters, buffers):
        return (weights * torch.func.functional_call(layers[0], (parameters, buffers), x)).sum()

    states = [
        [{name: tensor.detach().clone() for name, tensor in named()} for named in (L.named_parameters, L.named_buffers)]
        for L in layers
    ]
    stacked = [{name: torch.stack([state[i][name] for state in states]) for name in states[0][i]} for i in range(2)]
    together = torch.func.vmap(torch.func.grad(loss))(torch.stack(batches), *stacked)
    for i, (layer, x, (parameters, buffers)) in enumerate(zip(layers, batches, states, strict=True)):
        alone = torch.func.grad(loss)(x, parameters, buffers)
        x = x.clone().requires_grad_()
        (expected,) = torch.autograd.grad((weights * layer(x)).sum(), x)
        close(alone, expected)
        close(together[i], expected)
        for name, value in layer.named_buffers():
            close(buffers[name], value)
            close(stacked[1][name][i], value)


# --- dtypes, layouts, devices --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("autocast", [True, False])
def test_half_precision_features(dtype, training, autocast):
    """Computed in float32: the only loss is the rounding of the output, half a unit in the last place."""
    x = features(mean=1.0).to(dtype)
    layer = make(dtype=torch.float32).train(training)
    expected = copy.deepcopy(layer)(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        y = layer(x)
    assert y.dtype == dtype
    assert layer.running_mean.dtype == layer.running_matrix.dtype == torch.float32
    torch.testing.assert_close(y.float(), expected, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_autocast_changes_nothing_for_float32():
    x = features(dtype=torch.float32)
    layer = make(dtype=torch.float32)
    expected = value_and_gradients(copy.deepcopy(layer), x, ())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(x.requires_grad_())
    torch.testing.assert_close(found, expected[0], **SINGLE)  # bfloat16 would cost 1e-2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_converted_module(dtype):
    """Parameters and statistics of another dtype than the features: as if both had the wider one."""
    layer, x = make(dtype=torch.float32), features(dtype=torch.float32)
    for training in (True, False):
        converted = copy.deepcopy(layer).to(dtype).train(training)
        y = converted(x)
        assert y.dtype == torch.float32
        tolerance = 4 * torch.finfo(torch.bfloat16).eps if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(y, layer.train(training)(x), rtol=tolerance, atol=tolerance)


def test_statistics_are_float32_at_least():
    layer = DecorrelatedBatchNorm1d(6, dtype=torch.bfloat16)
    assert layer.weight.dtype == torch.bfloat16
    assert layer.running_mean.dtype == layer.running_whitening.dtype == torch.float32
    assert DecorrelatedBatchNorm1d(6, dtype=torch.float64).running_whitening.dtype == torch.float64


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("kind", "memory_format"), [("2d", torch.channels_last), ("3d", torch.channels_last_3d)])
def test_memory_format_is_kept(kind, memory_format, training, groups):
    x = features(kind)
    layer = make(kind, groups=groups).train(training)
    y, last = layer(x), layer(x.to(memory_format=memory_format))
    assert y.is_contiguous()
    assert not y.is_contiguous(memory_format=memory_format)
    assert last.is_contiguous(memory_format=memory_format)
    close(last, y)


def test_any_strides():
    layer, x = make(), features()
    sliced = torch.zeros(4, 9, 3, 10, dtype=torch.float64)[:, 1:7, :, ::2].copy_(x)
    permuted = x.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2)
    for view in (sliced, permuted, x[:1].expand(4, 6, 3, 5)):
        close(layer(view), layer(view.clone(memory_format=torch.contiguous_format)))


@every_layer
@every_track
@pytest.mark.parametrize("training", [True, False])
def test_no_value_is_read_on_the_host(kind, track, training):
    """Meta tensors have none."""
    layer = LAYERS[kind][0](6, device="meta", track=track, momentum=None).train(training)
    x = torch.empty(LAYERS[kind][1], device="meta", requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == x.shape == x.grad.shape


# --- a module like others ------------------------------------------------------------------------


@every_track
@pytest.mark.parametrize(("saved", "loaded"), [(torch.float64, torch.float32), (torch.float32, torch.float64)])
def test_state_dict_round_trip(track, saved, loaded):
    layer = make(track=track, dtype=saved)
    layer(features(dtype=saved))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = DecorrelatedBatchNorm2d(6, groups=2, track=track, device="meta", dtype=loaded).to_empty(device="cpu")
    other.load_state_dict(torch.load(file))
    assert other.running_matrix.dtype == loaded
    assert other.num_batches_tracked == 1
    x = features(seed=1)
    # Each rounds to float32 once, in the state or in the features.
    torch.testing.assert_close(layer.eval()(x.to(saved)).double(), other.eval()(x.to(loaded)).double(), **SINGLE)


def test_state_of_another_layer_does_not_load():
    with pytest.raises(RuntimeError, match="running_covariance"):
        make(track="covariance").load_state_dict(make(track="whitening").state_dict())


@every_track
@pytest.mark.parametrize("kind", ["1d", "2d", "3d"])
@pytest.mark.parametrize("method", ["auto", matroot.Pade(degree=3)])
@pytest.mark.parametrize("options", [{}, {"gradient": matroot.Lyapunov(iterations=9), "process_group": "world"}])
def test_prints_its_constructor_call(kind, track, method, options):
    layer = LAYERS[kind][0](
        6, group_size=2, eps=1e-3, momentum=None, affine=False, track=track, method=method, **options
    )
    again = eval(repr(layer), {**{name: getattr(matroot, name) for name in dir(matroot)}, **vars(matroot.nn)})
    assert type(again) is type(layer)
    plain = (int, float, str, bool, type(None), matroot.Pade, matroot.Lyapunov)
    settings = {name: value for name, value in vars(layer).items() if isinstance(value, plain)}
    assert settings.keys() >= {"num_features", "groups", "eps", "momentum", "affine", "track", "method", "gradient"}
    assert {name: vars(again)[name] for name in settings} == settings


@every_track
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))], ids=["copy", "pickle"]
)
def test_copies(track, again):
    layer = make(track=track, process_group="world")
    layer(features()).sum().backward()
    other = again(layer)
    assert all(torch.equal(value, layer.state_dict()[name]) for name, value in other.state_dict().items())
    close(other(features(seed=1)), layer(features(seed=1)))
    layer(features(seed=2))
    assert (other.num_batches_tracked, layer.num_batches_tracked) == (2, 3)
    assert not torch.allclose(other.running_matrix, layer.running_matrix)
    close(other.eval()(features()), again(other)(features()))


def test_world_is_this_process_where_nothing_is_initialised():
    x = features()
    close(make(process_group="world")(x), make()(x))


def test_checkpointing_runs_the_layer_twice():
    """Like BatchNorm: the same output and gradient, and running statistics that moved twice."""
    twice, once = make(), make()
    norm = nn.BatchNorm2d(6, dtype=torch.float64)
    x = features()
    found = value_and_gradients(lambda x: checkpoint(twice, x, use_reentrant=False), x, tuple(twice.parameters()))
    value_and_gradients(lambda x: checkpoint(norm, x, use_reentrant=False), x, ())
    for ours, true in zip(found, value_and_gradients(once, x, tuple(once.parameters())), strict=True):
        close(ours, true)
    assert twice.num_batches_tracked == norm.num_batches_tracked == 2


# --- torch.compile -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("training", "track", "channels_last"), [(True, "whitening", True), (False, "covariance", False)]
)
def test_compile(training, track, channels_last):
    """The root is in the graph of training, and in that of evaluation with ``track="covariance"``."""
    torch.compiler.reset()
    layer = make(track=track, momentum=None).train(training)
    other = copy.deepcopy(layer)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for seed in range(2):
        x = features(seed=seed)
        x = x.to(memory_format=torch.channels_last) if channels_last else x
        found = value_and_gradients(compiled, x, tuple(layer.parameters()))
        for ours, true in zip(found, value_and_gradients(other, x, tuple(other.parameters())), strict=True):
            close(ours, true)
    for name, value in other.state_dict().items():
        close(layer.state_dict()[name], value)
    assert compiled(x).is_contiguous(memory_format=torch.channels_last) == channels_last


def test_compile_to_code():
    torch.compiler.reset()
    layer = make()
    other = copy.deepcopy(layer)
    compiled = torch.compile(layer, fullgraph=True)
    found = value_and_gradients(compiled, features(), tuple(layer.parameters()))
    for ours, true in zip(found, value_and_gradients(other, features(), tuple(other.parameters())), strict=True):
        close(ours, true)
    close(layer.running_matrix, other.running_matrix)


def test_compile_any_batch_size_once():
    torch.compiler.reset()
    layer = make(track="covariance")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    compiled(features())
    with torch.compiler.set_stance("fail_on_recompile"):
        for batch in (3, 9):
            x = correlated(batch, 6, 3, 5)
            close(compiled(x), by_definition(x, layer))
