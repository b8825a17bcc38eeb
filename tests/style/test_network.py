"""The network: sizes, the autoencoder, and that its transforms transfer statistics."""

import copy
import math
from functools import partial

import pytest
import torch

from matroot.style import StyleNetwork, apply_style
from matroot.style.statistics import Coloring, Moments
from matroot.style.transforms import OptimalTransport, Whitening

from .examples import small_network


def test_number_of_parameters():
    # Counted by hand: convolutions of 9 a b + b, of single pixels a a + a.
    def conv(a, b):
        return 9 * a * b + b

    encoder = conv(3, 32) + conv(32, 64) + conv(64, 64) + conv(64, 128) + conv(128, 128) + 128 * 129
    decoder = conv(128, 64) + conv(64, 64) + conv(64, 32) + conv(32, 32) + 64 * 65
    painter = conv(32, 32) + conv(32, 3)
    assert sum(p.numel() for p in StyleNetwork().parameters()) == encoder + decoder + painter == 446_979


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 3), (8, 8), (17, 30)])
def test_pictures_of_any_size(network, size):
    images = torch.rand(2, 3, *size, dtype=torch.float64)
    out = network.stylize(images, network.statistics(images[:1]))
    assert out.shape == images.shape
    assert 0 <= out.min() <= out.max() <= 1


def test_sizes_of_features_are_rounded_up(network):
    shapes = [tuple(f.shape[1:]) for f in network.encode(torch.rand(1, 3, 17, 9, dtype=torch.float64))]
    assert shapes == [(6, 17, 9), (8, 9, 5), (10, 5, 3)]


@pytest.mark.parametrize("transform", [Whitening(), OptimalTransport(max_gain=math.inf)], ids=repr)
def test_features_after_a_transform_have_the_statistics_of_the_style(network, content, style, transform):
    network = copy.deepcopy(network)
    network.eps = 0.0  # with it they are those of the style but for eps
    statistics = network.statistics(style)
    x = None
    for k, features in enumerate(reversed(network.encode(content))):
        x = network.step(k, x, features)
        moments = Moments.of(x)
        x = Coloring.between(moments, statistics.means[k], statistics.roots[k], 1.0, network.eps, transform)(x)
        found = Moments.of(x)
        torch.testing.assert_close(found.mean, statistics.means[k].expand_as(found.mean), rtol=1e-10, atol=1e-12)
        expected = statistics.covariances[k].expand_as(found.covariance)
        # Condition numbers are a few hundred; transport has the product of two, which leaves eleven digits.
        torch.testing.assert_close(found.covariance, expected, rtol=0, atol=1e-11 * float(expected.abs().max()))
    assert torch.equal(network.paint(x), network.stylize(content, statistics, transform=transform))


def test_strength_zero_is_the_autoencoder(network, content, style):
    statistics = network.statistics(style)
    assert torch.equal(network.stylize(content, statistics, 0.0), network(content))
    by_tensor = network.stylize(content, statistics, torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(by_tensor, network(content), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_strengths_of_any_dtype(content, style, dtype):
    network = small_network(eps=1e-4).float()
    content, statistics = content.float(), network.statistics(style.float())
    found = network.stylize(content, statistics, torch.tensor([0.25, 0.75], dtype=dtype))
    for one, image, strength in zip(found, content, (0.25, 0.75), strict=True):
        # Of float32, 1e-7, amplified by inverse roots; a level is 4e-3.
        torch.testing.assert_close(one[None], network.stylize(image[None], statistics, strength), rtol=0, atol=1e-3)


def test_strength_changes_the_picture_continuously(network, content, style):
    statistics = network.statistics(style)
    pictures = [network.stylize(content, statistics, strength) for strength in (0.0, 1e-6, 0.5, 1.0)]
    torch.testing.assert_close(pictures[0], pictures[1], rtol=0, atol=1e-4)
    assert (pictures[0] - pictures[3]).abs().mean() > 0.02
    assert (pictures[0] - pictures[2]).abs().mean() < (pictures[0] - pictures[3]).abs().mean()


def test_a_picture_in_its_own_style_is_reproduced(network, style):
    found = network.stylize(style, network.statistics(style))
    torch.testing.assert_close(found, network(style), rtol=1e-8, atol=1e-10)


def test_images_of_a_batch_do_not_affect_each_other(network, content, style):
    statistics = network.statistics(style)
    whole = network.stylize(content, statistics)
    torch.testing.assert_close(whole, torch.cat([network.stylize(c, statistics) for c in content.split(1)]))


@pytest.mark.parametrize("transform", ["transport", "whitening"])
def test_derivative_of_all_of_it(content, style, transform):
    # Central differences in a random direction, of content and style at once; smooth but for ReLUs and limits of gains,
    # few of which are passed within 1e-6.
    network = small_network(eps=1e-4)
    generator = torch.Generator().manual_seed(0)
    inputs = [content[:1, :, :16, :16], style[..., :16, :16]]
    directions = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in inputs]

    def loss(step):
        c, s = (x + step * d for x, d in zip(inputs, directions, strict=True))
        return network.stylize(c, network.statistics(s), transform=transform).square().sum()

    step = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(step), step)
    with torch.no_grad():
        expected = (loss(torch.tensor(1e-6)) - loss(torch.tensor(-1e-6))) / 2e-6
    torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["eigen", "minimax"])
def test_exact_methods_agree(network, content, style, method):
    default = network.stylize(content, network.statistics(style))
    other = network.stylize(content, network.statistics(style, method=method), method=method)
    torch.testing.assert_close(other, default, rtol=0, atol=1e-10)


def test_the_method_is_used_for_both_roots(network, content, style):
    # A series of fixed length does not reach the roots of these covariances, whose condition numbers are above 100.
    exact = network.statistics(style)
    by_series = network.statistics(style, method="taylor")
    assert (by_series.roots[0] - exact.roots[0]).abs().max() > 1e-6
    difference = network.stylize(content, exact, method="taylor") - network.stylize(content, exact)
    assert difference.abs().max() > 1e-6


@pytest.mark.parametrize("channels", [(8, 8), (8, 8, 8, 8), (8, 0, 8)])
def test_other_numbers_of_channels(channels):
    with pytest.raises(ValueError, match="channels must be 3 positive numbers"):
        StyleNetwork(channels)


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 1, 8, 8), (1, 4, 8, 8)])
def test_other_shapes(network, shape):
    with pytest.raises(ValueError, match="images must have"):
        network.encode(torch.rand(shape))


def test_styles_that_do_not_fit(network, content, style):
    with pytest.raises(ValueError, match="style must have a batch of 1 or of content's 2; got 3"):
        network.stylize(content, network.statistics(style.expand(3, -1, -1, -1)))
    for transfer in (network.stylize, partial(apply_style, network=network)):
        with pytest.raises(TypeError, match="style must be StyleStatistics, as found in pictures, got Tensor"):
            transfer(content[:1], style)
    other = StyleNetwork((4, 4, 4)).double().statistics(style)
    with pytest.raises(ValueError, match="content has 10 channels and style 4; they must be equal"):
        network.stylize(content, other)


@pytest.mark.parametrize("shape", [(2, 45, 70), (3, 1, 45, 70), (2, 3, 45, 70), (2, 1, 45, 69)])
def test_importance_that_does_not_fit(network, content, style, shape):
    with pytest.raises(ValueError, match=r"importance must be \(B or 1, 1, H, W\)"):
        network.stylize(content, network.statistics(style), importance=torch.ones(shape))


def test_prints_as_its_constructor_call():
    assert "channels=(2, 2, 2), eps=0.0001" in repr(StyleNetwork((2, 2, 2)))
