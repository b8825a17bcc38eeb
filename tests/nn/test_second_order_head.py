"""The second-order transformer head against its formula."""

import pytest
import torch

from matroot.nn import CovariancePool, SecondOrderHead

from ..matrices import exact_root


def tokens(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


def head(*args, dtype=torch.float64, **kwargs):
    torch.manual_seed(0)
    return SecondOrderHead(*args, **kwargs).to(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_is_the_sum_of_two_classifiers(dtype, tolerance):
    """50 tokens of 6 features have no zero eigenvalue: rounding is some hundreds of eps."""
    layer, x = head(8, 5, reduce_to=6, dtype=dtype), tokens(3, 51, 8, dtype=dtype)
    wide, X = head(8, 5, reduce_to=6), x.double()
    convolution, norm, _ = wide.pool.reduce
    Y = X[:, 1:] @ convolution.weight[..., 0].T
    Y = ((Y - Y.mean((0, 1))) / (Y.var((0, 1), correction=0) + norm.eps).sqrt()).relu()
    S = exact_root(torch.stack([torch.cov(one.T, correction=0) for one in Y]))
    expected = wide.first_order(X[:, 0]) + wide.second_order(S[:, *torch.triu_indices(6, 6)])
    torch.testing.assert_close(layer(x).double(), expected, rtol=tolerance, atol=tolerance)


def test_tokens_have_no_order_but_the_class_token_does():
    layer, x = head(8, 5, reduce_to=6), tokens(3, 20, 8)
    order = torch.cat([torch.tensor([0]), 1 + torch.randperm(19, generator=torch.Generator().manual_seed(0))])
    torch.testing.assert_close(layer(x[:, order]), layer(x), rtol=1e-10, atol=1e-10)
    assert (layer(x.roll(1, 1)) - layer(x)).abs().max() > 1e-2


def test_class_token_is_not_in_the_covariance():
    """What it adds is linear: equal steps in it make equal steps in the logits."""
    layer, x = head(8, 5, reduce_to=6), tokens(3, 20, 8)
    step = torch.zeros_like(x)
    step[:, 0] = 1
    torch.testing.assert_close(layer(x + step) - layer(x), layer(x + 2 * step) - layer(x + step))


@pytest.mark.parametrize(("width", "reduce_to", "numbers"), [(256, 48, 1176), (384, 64, 2080)])
def test_sizes_of_the_paper(width, reduce_to, numbers):
    layer = SecondOrderHead(width, 10, reduce_to)
    assert layer.second_order.in_features == numbers
    assert layer(torch.randn(2, 197, width)).shape == (2, 10)


def test_without_reduction():
    layer, x = head(8, 5, reduce_to=None), tokens(3, 20, 8)
    second = layer.second_order(CovariancePool(8, None, dims=1)(x[:, 1:].mT))
    torch.testing.assert_close(layer(x), layer.first_order(x[:, 0]) + second)


def test_refuses():
    layer = SecondOrderHead(8, 5, reduce_to=6)
    with pytest.raises(ValueError, match=r"8 features; got 7, shape \(2, 9, 7\)"):
        layer(torch.ones(2, 9, 7))
    with pytest.raises(ValueError, match="3 dimensions; got 4"):
        layer(torch.ones(2, 3, 3, 8))
    with pytest.raises(ValueError, match="2 tokens; got 1"):
        layer(torch.ones(2, 1, 8))
