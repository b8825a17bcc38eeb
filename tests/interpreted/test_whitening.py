"""The kernels that whiten features, under Triton's interpreter.

The interpreter does not round factors of products, so that errors are those of float32; what is written
in half precision it cuts off.
"""

import pytest
import torch
import triton

from matroot.backends.triton.whitening import launch as whitening

from ..matrices import error

EPS = torch.finfo(torch.float32).eps
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # of NaN and Inf, on purpose


@pytest.fixture(autouse=True)
def a_few_chunks(monkeypatch):
    monkeypatch.setattr(whitening, "multiprocessors", lambda device: 3)
    whitening._plan.cache_clear()


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def blocks(x, groups):
    """(G, d, M) in double precision."""
    return x.double().transpose(0, 1).flatten(1).unflatten(0, (groups, -1))


def test_this_is_the_interpreter():
    assert triton.knobs.runtime.interpret


@pytest.mark.parametrize(
    ("positions", "groups", "size", "dtype"),
    [
        (1, 1, 3, torch.float16),
        (2, 5, 1, torch.bfloat16),
        (7, 2, 16, torch.float16),
        (64, 1, 33, torch.bfloat16),
        (300, 1, 64, torch.float16),
        (1001, 2, 5, torch.bfloat16),
        (1001, 2, 5, torch.float16),
        (1500, 1, 16, torch.bfloat16),
        (130, 1, 100, torch.float16),
    ],
)
def test_against_double_precision(positions, groups, size, dtype):
    """Of data with a mean of a few deviations; sums of positive terms are exact to some eps, others to eps times
    the size of the terms."""
    channels = groups * size
    x = (noise(positions, channels) + 2).to(dtype)
    mean, covariance, shifted = whitening.statistics(x, groups, 0.25)
    X = blocks(x, groups)
    mu = X.mean(2, keepdim=True)
    centred = X - mu
    Sigma = centred @ centred.mT / positions
    assert (mean - mu.flatten()).abs().max() < 8 * EPS
    assert (covariance - Sigma).abs().max() < 16 * EPS * (1 + Sigma.abs().max())
    assert torch.equal(shifted, covariance + 0.25 * torch.eye(size))
    for affine in (True, False):
        W, weight, bias = noise(groups, size, size, seed=1), noise(channels, seed=2), noise(channels, seed=3)
        W = W / size**0.5
        parameters = (weight, bias) if affine else (None, None)
        A = (weight.double().view(groups, size, 1) if affine else 1) * W.double()
        y = whitening.transform(x, mean, W, *parameters)
        true = A @ centred + (bias.view(groups, size, 1) if affine else 0)
        ulp = torch.finfo(dtype).eps
        assert y.dtype == dtype
        assert (blocks(y, groups) - true).abs().max() < ulp * true.abs().max() + 64 * EPS

        g = noise(positions, channels, seed=4).to(dtype)
        grad_bias, grad_weight, grad_W = whitening.gradients(g, x, mean, W, parameters[0])
        G = blocks(g, groups)
        T = G @ centred.mT
        terms = EPS * (4 + positions**0.5) * 8
        assert (grad_bias - G.sum(2).flatten()).abs().max() < terms
        assert (grad_W - (T * weight.view(groups, size, 1) if affine else T)).abs().max() < 4 * terms
        if affine:
            assert (grad_weight - (T * W).sum(2).flatten()).abs().max() < 4 * terms * size**0.5
        H = noise(groups, size, size, seed=5)
        S = (H + H.mT).double() / positions
        true = A.mT @ G + S @ centred
        grad_mean = noise(channels, seed=6)
        grad_x = whitening.vjp(g, x, mean, W, parameters[0], H, grad_bias, None)
        with_constant = whitening.vjp(g, x, mean, W, parameters[0], H / positions, None, grad_mean)
        for found, constant in (
            (grad_x, -(A.mT @ G).mean(2, keepdim=True)),
            (with_constant, grad_mean.view(groups, size, 1)),
        ):
            expected = true + constant
            slack = 64 * EPS * (1 + S.abs().max() * size)
            assert (blocks(found, groups) - expected).abs().max() < ulp * expected.abs().max() + slack


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_large_mean_cancels_nowhere(dtype):
    """A thousand deviations, and one that jumps between chunks; E[x^2] - E[x]^2 would be wrong by 1e6 eps = 0.1."""
    x = noise(1500, 16) + 1000
    x[600:] += 50
    x = x.to(dtype)
    mean, covariance, _ = whitening.statistics(x, 1, 0.0)
    X = blocks(x, 1)
    assert error(mean[None], X.mean(2)) < EPS
    assert error(covariance, torch.cov(X[0], correction=0)[None]) < 100 * EPS


def test_bad_groups_harm_no_other():
    x = noise(200, 12).half()
    good = whitening.statistics(x, 3, 0.0)
    spoilt = x.clone()
    spoilt[7, 5], spoilt[150, 6] = float("nan"), float("inf")
    for found, true in zip(whitening.statistics(spoilt, 3, 0.0), good, strict=True):
        found, true = found.view(3, 4, -1), true.view(3, 4, -1)
        assert torch.equal(found[::2], true[::2])
        assert not torch.isfinite(found[1]).all()


@pytest.mark.parametrize(
    ("x", "taken"),
    [
        (torch.empty(2, 8, 3, 3, dtype=torch.half).to(memory_format=torch.channels_last), True),
        (torch.empty(2, 8, 3, 3, dtype=torch.half), False),
        (torch.empty(2, 8, 3, 3).to(memory_format=torch.channels_last), False),
        (torch.empty(5, 8, dtype=torch.bfloat16), True),
        (torch.empty(5, 9, dtype=torch.bfloat16)[:, :8], False),
        (torch.empty(0, 8, dtype=torch.bfloat16), False),
        (torch.empty(5, 258, dtype=torch.bfloat16), False),
    ],
    ids=lambda value: str(tuple(value.shape)) if isinstance(value, torch.Tensor) else str(value),
)
def test_what_fits(x, taken, monkeypatch):
    assert not whitening.fits(x, 2)
    monkeypatch.setattr(whitening, "available", lambda device: True)
    assert whitening.fits(x, 2) == taken


def test_groups_fit_a_grid(monkeypatch):
    """CUDA takes 65535 programs along the second dimension."""
    monkeypatch.setattr(whitening, "available", lambda device: True)
    x = torch.empty(2, 1 << 16, dtype=torch.half)
    assert whitening.fits(x, 1 << 15)
    assert not whitening.fits(x, 1 << 16)
