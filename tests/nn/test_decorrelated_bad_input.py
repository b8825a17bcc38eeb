"""Decorrelated batch normalisation of little, degenerate and bad data, and what is refused."""

import copy
import functools

import pytest
import torch

from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d

from .correlated import correlated, covariance
from .decorrelated_layers import (
    SINGLE,
    close,
    every_track,
    features,
    make,
)

# --- little data, bad data -----------------------------------------------------------------------

noise = functools.partial(torch.randn, generator=torch.Generator().manual_seed(0))
DEGENERATE = {
    "one-row": noise(1, 8),
    "fewer-than-channels": noise(3, 8),
    "as-many-as-channels": noise(8, 8),
    "zero": torch.zeros(10, 8),
    "constant": torch.full((10, 8), 1.1e4),
    "constant-channels": noise(10, 8) * torch.tensor([0, 1, 0, 1, 0, 1, 0, 1.0]) + 7,
    "equal-channels": noise(10, 1).expand(10, 8),
    "tiny": 1e-20 * noise(10, 8),
    "large": 1e12 * noise(10, 8),
    "large-and-few": 1e12 * noise(3, 8),
}


@every_track
@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_degenerate_batches(kind, track, groups, dtype):
    layer = DecorrelatedBatchNorm1d(8, groups=groups, track=track, dtype=dtype)
    x = DEGENERATE[kind].to(dtype).clone().requires_grad_()
    y = layer(x)
    y.backward(torch.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape))
    for tensor in (y, x.grad, layer.weight.grad, layer.bias.grad, layer.running_mean, layer.running_matrix):
        assert torch.isfinite(tensor).all()
    # A white output is bounded: no single position is further from the mean than sqrt(positions).
    assert y.abs().max() <= len(x) ** 0.5 * 8
    assert torch.isfinite(layer.eval()(x)).all()


def test_dead_channels_stay_dead():
    """And the other channels become white all the same."""
    x = correlated(50, 8, condition=30)
    x[:, ::2] = 3.0
    y = DecorrelatedBatchNorm1d(8, eps=1e-9, dtype=torch.float64)(x)
    assert y[:, ::2].abs().max() < 1e-6
    close(covariance(y[:, 1::2]), torch.eye(4, dtype=torch.float64), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("momentum", [0.1, None])
@every_track
def test_a_batch_that_is_not_finite_leaves_the_running_statistics(bad, momentum, track):
    """1e30 is finite, its square is not. Running statistics are those of the other batches, up to rounding."""
    layer = make(dtype=torch.float32, momentum=momentum, track=track)
    first, last = features(dtype=torch.float32), features(dtype=torch.float32, seed=1)
    nonfinite = first.clone()
    nonfinite[0, 0, 0, 0] = bad
    without = copy.deepcopy(layer)
    for x in (nonfinite, first, nonfinite, last):
        y = layer(x)
        assert torch.isnan(y[:, :3]).all() == (x is nonfinite)
        assert torch.isfinite(y[:, 3:]).all()
    for x in (first, last):
        without(x)
    for name, value in without.state_dict().items():
        torch.testing.assert_close(layer.state_dict()[name], value, **SINGLE)
    assert layer.num_batches_tracked == 2


@pytest.mark.parametrize("shape", [(1, 6), (0, 6), (1, 6, 1), (0, 6, 4)])
def test_a_batch_of_one_position_leaves_the_running_statistics(shape):
    layer = make("1d")
    before = copy.deepcopy(layer.state_dict())
    y = layer(torch.randn(shape, dtype=torch.float64))
    assert y.shape == shape
    close(y, layer.bias.detach().view(6, *(1 for _ in shape[2:])).expand(shape))
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        ("1d", (4, 6, 2, 2), "expected an input of 2 or 3 dimensions, got 4"),
        ("2d", (4, 6, 2), "expected an input of 4 dimensions, got 3"),
        ("3d", (6,), "expected an input of 5 dimensions, got 1"),
        ("2d", (4, 5, 2, 2), "expected 6 channels in dimension 1, got 5"),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_wrong_input(kind, shape, message, training):
    with pytest.raises(ValueError, match=message):
        make(kind).train(training)(torch.ones(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.complex64])
@pytest.mark.parametrize("training", [True, False])
def test_features_that_are_not_real_numbers_are_refused(dtype, training):
    """White integers would be truncated to a few values."""
    layer = make(dtype=torch.float32).train(training)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(TypeError, match=f"x must be real floating point, got {dtype}"):
        layer(torch.ones(4, 6, 3, 5, dtype=dtype))
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 4}, "groups 4 must divide num_features 6"),
        ({"groups": 0}, "groups 0 must divide num_features 6"),
        ({"group_size": 4}, "group_size 4 must divide num_features 6"),
        ({"group_size": 0}, "group_size 0 must divide num_features 6"),
        ({"groups": 2, "group_size": 3}, "not both: got 2 and 3"),
        ({"num_features": 0}, "num_features must be at least 1, got 0"),
        ({"eps": -1e-5}, "eps must be a finite number >= 0, got -1e-05"),
        ({"eps": float("nan")}, "eps must be a finite number >= 0, got nan"),
        (
            {"track": "variance"},
            r"unknown track 'variance'; did you mean 'covariance'\? Valid names are whitening, cov",
        ),
        ({"method": "svd"}, "unknown method 'svd'"),
        ({"method": "power-iteration"}, "has no inverse root"),
        ({"gradient": "none"}, "unknown gradient 'none'"),
        ({"process_group": "all"}, "process_group must be None, 'world' or a process group, got 'all'"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        DecorrelatedBatchNorm2d(**({"num_features": 6} | options))
