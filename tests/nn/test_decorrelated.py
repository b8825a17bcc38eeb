"""Decorrelated batch normalisation: values, gradients, running statistics."""

import copy

import kornia
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import matroot
from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d

from .correlated import correlated, covariance
from .decorrelated_layers import (
    by_definition,
    close,
    every_layer,
    every_track,
    features,
    make,
    value_and_gradients,
)

# --- values and gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("channels", [3, 16, 64])
def test_output_is_white(channels, condition, dtype):
    """Rounding a covariance moves it by eps * lambda_max, which is condition * eps of its smallest eigenvalue.

    To that the root, the product and the measurement add some eps each.
    """
    x = correlated(16, channels, 5, 7, condition=condition, dtype=dtype)
    y = DecorrelatedBatchNorm2d(channels, eps=0.0, affine=False, dtype=dtype)(x)
    assert (covariance(y) - torch.eye(channels)).abs().max() < (condition + 20) * torch.finfo(dtype).eps


@every_layer
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
def test_values_and_gradients_are_those_of_the_definition(kind, groups, affine):
    layer, x = make(kind, groups=groups, affine=affine), features(kind, mean=3.0)
    parameters = tuple(layer.parameters())
    found = value_and_gradients(layer, x, parameters)
    expected = value_and_gradients(lambda x: by_definition(x, layer), x, parameters)
    assert len(found) == 2 + 2 * affine
    for ours, true in zip(found, expected, strict=True):
        close(ours, true, rtol=1e-8)


def test_gradcheck():
    layer = make("1d", momentum=0.0)
    x = correlated(12, 6).requires_grad_()
    assert torch.autograd.gradcheck(layer, (x,))
    assert torch.autograd.gradgradcheck(lambda x: layer(x)[:3], (x,))


@pytest.mark.parametrize("shape", [(30, 5), (6, 5, 9)])
def test_groups_of_one_channel_are_batch_normalisation(shape):
    x = correlated(*shape, mean=2.0)
    ours = DecorrelatedBatchNorm1d(5, group_size=1, track="covariance", dtype=torch.float64)
    theirs = nn.BatchNorm1d(5, dtype=torch.float64)
    pairs = zip(
        value_and_gradients(ours, x, tuple(ours.parameters())),
        value_and_gradients(theirs, x, tuple(theirs.parameters())),
        strict=True,
    )
    for found, expected in pairs:
        close(found, expected)
    close(ours.running_mean, theirs.running_mean)
    # The running variance of BatchNorm is divided by one position less.
    positions = x.numel() / 5
    unbiased = 0.9 + (ours.running_covariance.flatten() - 0.9) * positions / (positions - 1)
    close(unbiased, theirs.running_var)


@pytest.mark.parametrize("eps", [1e-6, 1e-2])
def test_kornia_whitens_the_same(eps):
    x = correlated(60, 8, condition=100, mean=1.0)
    expected = kornia.enhance.ZCAWhitening(dim=0, eps=eps, unbiased=False).fit(x)(x)
    close(DecorrelatedBatchNorm1d(8, eps=eps, affine=False, dtype=torch.float64)(x), expected)


@settings(max_examples=25, deadline=None)
@given(batch=st.integers(2, 9), channels=st.integers(1, 8), length=st.integers(1, 5), seed=st.integers(0, 99))
def test_rotating_the_channels_rotates_the_output(batch, channels, length, seed):
    """What distinguishes ZCA from other whitenings; holds for covariances of any rank because of eps."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, channels, length, generator=generator, dtype=torch.float64)
    Q = torch.linalg.qr(torch.randn(channels, channels, generator=generator, dtype=torch.float64)).Q
    layer = DecorrelatedBatchNorm1d(channels, eps=1e-3, affine=False, dtype=torch.float64)
    close(layer(Q @ x), Q @ layer(x), rtol=1e-8, atol=1e-8)


def test_groups_do_not_see_each_other():
    layer, x = make(), features()
    other = x.clone()
    other[:, 3:] = other[:, 3:].exp()
    y, changed = layer(x), layer(other)
    close(changed[:, :3], y[:, :3])
    assert not torch.allclose(changed[:, 3:], y[:, 3:])


def test_group_size_is_another_way_to_say_groups():
    x = features()
    sized, counted = DecorrelatedBatchNorm2d(6, group_size=2), DecorrelatedBatchNorm2d(6, groups=3)
    assert sized.groups == counted.groups
    close(sized(x), counted(x))


@pytest.mark.parametrize("mean", [1e2, 1e4])
def test_a_large_mean_does_not_cancel(mean):
    """The mean is known to eps * mean; E[x^2] - E[x]^2 would know the covariance to eps * mean^2 only."""
    x = features(mean=mean, dtype=torch.float32)
    exact = DecorrelatedBatchNorm2d(6, dtype=torch.float64)(x.double())
    for channels_last in (False, True):
        given = x.to(memory_format=torch.channels_last) if channels_last else x
        error = (DecorrelatedBatchNorm2d(6)(given) - exact).abs().max()
        # Times ||W|| = sqrt(10).
        assert error < 4 * 10**0.5 * mean * torch.finfo(torch.float32).eps + 1e-5


def test_positions_are_never_squared():
    """200,000 positions: an N x N centring matrix would take 160 GB."""
    x = torch.randn(2, 4, 100_000)
    assert (covariance(DecorrelatedBatchNorm1d(4)(x)) - torch.eye(4)).abs().max() < 1e-4  # eps and float32


@pytest.mark.parametrize(
    "choice", [{"method": "pade"}, matroot.preset("ns"), {"gradient": matroot.Lyapunov()}], ids=str
)
def test_method_and_gradient_are_used(choice):
    layer, x = DecorrelatedBatchNorm1d(6, dtype=torch.float64, **choice), features("1d").requires_grad_()
    centred = x - x.mean(0)
    W = matroot.invsqrtm(centred.T @ centred / len(x) + layer.eps * torch.eye(6), **choice)
    cotangent = features("1d", seed=1)
    expected, (gradient,) = centred @ W, torch.autograd.grad(centred @ W, x, cotangent)
    y = layer(x)
    close(y, expected)
    close(torch.autograd.grad(y, x, cotangent)[0], gradient)


def test_published_weights_are_a_choice():
    torch.manual_seed(0)
    layer = DecorrelatedBatchNorm2d(1000, group_size=1)
    assert (layer.weight == 1).all()
    layer.reset_parameters(uniform=True)
    assert layer.weight.min() >= 0
    assert layer.weight.max() <= 1
    assert abs(layer.weight.mean() - 0.5) < 0.05  # five standard deviations
    assert not layer.bias.any()


# --- running statistics --------------------------------------------------------------------------


def whitening_of(x, layer):
    blocks = (x - x.mean(0)).T.unflatten(0, (layer.groups, -1))
    size = blocks.shape[1]
    Sigma = blocks @ blocks.mT / len(x)
    return Sigma, matroot.invsqrtm(Sigma + layer.eps * torch.eye(size, dtype=x.dtype), "eigen")


@every_track
@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_running_statistics(track, momentum):
    layer = make("1d", track=track, momentum=momentum)
    mean, matrix = torch.zeros(6).double(), torch.eye(3).double().expand(2, 3, 3)
    for seed in range(3):
        x = correlated(40, 6, mean=seed + 1.0, condition=10.0 ** (seed + 1), seed=seed)
        layer(x)
        factor = momentum or 1 / (seed + 1)
        Sigma, W = whitening_of(x, layer)
        mean = (1 - factor) * mean + factor * x.mean(0)
        matrix = (1 - factor) * matrix + factor * (W if track == "whitening" else Sigma)
    close(layer.running_mean, mean)
    close(layer.running_matrix, matrix)
    assert layer.num_batches_tracked == 3

    layer.eval()
    x = features("1d", seed=9)
    eye = torch.eye(3, dtype=torch.float64)
    W = matrix if track == "whitening" else matroot.invsqrtm(matrix + layer.eps * eye, "eigen")
    close(layer.whitening_matrix(), W)
    y = (W @ (x - mean).T.unflatten(0, (2, 3))).flatten(0, 1).T
    close(layer(x), layer.weight * y + layer.bias)


@every_layer
@every_track
def test_evaluation_on_the_one_batch_seen_is_training(kind, track):
    layer, x = make(kind, track=track, momentum=1.0), features(kind, mean=2.0)
    trained = layer(x)
    close(layer.eval()(x), trained)


@every_track
def test_evaluation_changes_nothing(track):
    layer = make(track=track)
    layer(features())
    layer.eval()
    before = copy.deepcopy(layer.state_dict())
    first = layer(features(seed=1))
    close(layer(features(seed=1)), first)
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])
    # Evaluation does not depend on the rest of the batch.
    close(layer(features(seed=1)[:1]), first[:1])


def test_an_untrained_layer_evaluates_to_the_identity():
    x = features()
    assert torch.equal(DecorrelatedBatchNorm2d(6, dtype=torch.float64).eval()(x), x)


def test_reset_forgets():
    layer = make()
    fresh = copy.deepcopy(layer.state_dict())
    layer(features())
    assert layer.num_batches_tracked == 1
    layer.reset_running_stats()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, fresh[name])
