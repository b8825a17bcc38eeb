"""``matroot.style.stylize`` on tensors."""

import numpy as np
import pytest
import torch

from matroot.style import OptimalTransport, apply_style, blend, style_statistics, stylize
from matroot.style.color import recolored
from matroot.style.grain import GRAIN, importance, without_grain, without_rings
from matroot.style.resizing import limited

from .examples import picture, small_network

ROUNDING = {"rtol": 0, "atol": 1e-11}
"""Of float64, amplified by inverse roots."""


@pytest.fixture
def photo():
    """(3, 45, 70) in float32."""
    return picture(45, 70, seed=1)[0].float()


@pytest.fixture
def painting():
    return picture(64, 53, seed=2)[0].float() ** 2


@pytest.mark.parametrize("transform", ["transport", "whitening", OptimalTransport(max_gain=3)], ids=str)
def test_it_is_the_network(network, content, style, transform):
    options = {"transform": transform, "grain": 0.0, "network": network}
    statistics = network.statistics(style)
    expected = network.stylize(content, statistics, transform=transform)
    torch.testing.assert_close(stylize(content, style, **options), expected, **ROUNDING)
    half = network.stylize(content, statistics, 0.5, transform=transform)
    torch.testing.assert_close(stylize(content, style, 0.5, tile=32, **options), half, **ROUNDING)


@pytest.mark.parametrize(("strength", "share"), [(0.25, 0.5), (0.5, 1.0), (1.0, 1.0)])
def test_grain_is_smoothed_before_and_hardly_counts(network, content, style, strength, share):
    smooth = without_grain(content, GRAIN, share, tile=512)
    assert (smooth - content).abs().max() > 1 / 255
    counts = importance(smooth, GRAIN, tile=512)
    painted = network.stylize(smooth, network.statistics(style), strength, importance=counts)
    expected = without_rings(painted, smooth, GRAIN, share, tile=512)
    torch.testing.assert_close(stylize(content, style, strength, network=network), expected, **ROUNDING)
    # At strength 0 nothing is.
    assert torch.equal(stylize(content, style, 0.0, network=network), network(content))


def test_shape_and_dtype_are_those_of_the_content(network, photo, painting):
    for content in (photo, photo[None], photo.double(), photo[:1], photo.bfloat16()):
        found = stylize(content, painting, network=network)
        assert found.shape == (*content.shape[:-3], 3, 45, 70)
        assert found.dtype == content.dtype
        assert 0 <= found.min() <= found.max() <= 1


def test_grey_is_red_green_and_blue(network, photo, painting):
    grey = photo[:1]
    assert torch.equal(
        stylize(grey, painting, network=network), stylize(grey.expand(3, -1, -1), painting, network=network)
    )


def test_alpha_is_put_back(network, photo, painting):
    alpha = torch.rand(1, 45, 70).round()
    found = stylize(torch.cat((photo, alpha)), painting, network=network)
    assert torch.equal(found[3:], alpha)
    # What is stored where nothing is seen does not matter.
    other = stylize(torch.cat((torch.where(alpha == 0, 1 - photo, photo), alpha)), painting, network=network)
    torch.testing.assert_close(other, found)


def test_several_styles(network, content, style):
    other = picture(30, 40, seed=3)
    statistics = blend([network.statistics(style), network.statistics(other)], [1, 3])
    expected = network.stylize(content, statistics)
    found = stylize(content, [style[0], other], weights=[0.5, 1.5], grain=0, network=network)
    torch.testing.assert_close(found, expected, **ROUNDING)


def test_colours_are_kept(network, content, style):
    # Each photo with a painting in its own colours.
    found = stylize(content, style, keep_colors=True, grain=0, network=network)
    for k, photo in enumerate(content.split(1)):
        expected = network.stylize(photo, network.statistics(recolored(style, photo)))
        torch.testing.assert_close(found[k : k + 1], expected, **ROUNDING)
    assert (found - stylize(content, style, grain=0, network=network)).abs().mean() > 0.01


def test_max_size_is_that_of_the_result(network, photo, painting):
    assert stylize(photo, painting, max_size=35, network=network).shape == (3, 22, 35)
    assert stylize(photo, painting, max_size=70, network=network).shape == (3, 45, 70)
    with_alpha = stylize(torch.cat((photo, photo[:1])), painting, max_size=35, network=network)
    assert with_alpha.shape == (4, 22, 35)


def test_style_size(network, content, style):
    reduced = limited(style, 32)
    expected = stylize(content, reduced, style_size=None, network=network)
    assert torch.equal(stylize(content, style, style_size=32, network=network), expected)
    assert not torch.equal(stylize(content, style, style_size=None, network=network), expected)


def test_reducing_keeps_means_and_is_no_shuffle():
    x = picture(64, 96, seed=1)
    small = limited(x, 48)
    assert small.shape == (1, 3, 32, 48)
    torch.testing.assert_close(small.mean((2, 3)), x.mean((2, 3)), rtol=0, atol=0.01)
    # The area average, but for the filter's overlap.
    areas = x.unflatten(2, (32, 2)).unflatten(4, (48, 2)).mean((3, 5))
    assert (small - areas).abs().mean() < 0.02
    assert limited(torch.rand(1, 3, 1000, 1), 10).shape == (1, 3, 10, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"max_size": 64, "style_size": 32}, {"scales": 2}], ids=str)
def test_pictures_in_half_precision(dtype, options, network):
    """What a processor has no resizing for; the network computes in its own precision."""
    content, style = picture(80, 96, seed=1)[0].to(dtype), picture(64, 53, seed=2)[0].to(dtype)
    found = stylize(content, style, grain=0, network=network, **options)
    exact = stylize(content.double(), style.double(), grain=0, network=network, **options)
    assert found.dtype == dtype
    # Resizing rounds pictures to their dtype, which transfers amplify.
    assert (found.double() - exact).abs().mean() < 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize(("dtype", "levels"), [(torch.float32, 0.01), (torch.float16, 0.2), (torch.bfloat16, 1.0)])
def test_precisions_agree_to_what_the_eye_sees(dtype, levels):
    # In levels of eight bits, the mean over the picture; eps as the packaged network has it.
    content, style = picture(96, 96, seed=1)[0], picture(96, 96, seed=2)[0]
    network = small_network(eps=1e-4)
    exact = stylize(content, style, network=network)
    found = stylize(content.float(), style.float(), network=network.to(dtype))
    assert found.dtype == torch.float32
    assert 255 * (found - exact).abs().mean() < levels


def test_a_style_for_many_photos(network, photo, painting):
    statistics = style_statistics([painting], network=network)
    assert torch.equal(apply_style(photo, statistics, network=network), stylize(photo, painting, network=network))
    with pytest.raises(ValueError, match="content must be one picture, got a batch of 2"):
        apply_style(torch.stack((photo, photo)), statistics, network=network)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"strength": 1.5}, ValueError, r"strength must be in \[0, 1\], got 1.5"),
        ({"max_size": 0}, ValueError, "at least 1"),
        ({"style_size": -1}, ValueError, "at least 1"),
        ({"tile": 0}, ValueError, "at least one pixel"),
        ({"weights": [1, 1]}, ValueError, "one for each of 1 styles"),
        ({"method": "nonsense"}, ValueError, "unknown method"),
        ({"transform": "nonsense"}, ValueError, "unknown transform"),
        ({"grain": -1}, ValueError, "levels from 0 on"),
        ({"style": []}, ValueError, "at least one style"),
        ({"style": torch.rand(2, 3, 8, 8)}, ValueError, "batch of 2"),
        ({"style": torch.rand(8, 8)}, ValueError, "a style must be"),
        ({"content": torch.rand(3, 0, 8)}, ValueError, "at least one pixel"),
        ({"content": torch.rand(5, 8, 8)}, ValueError, "1 to 4 channels"),
        ({"content": torch.zeros(3, 8, 8, dtype=torch.uint8)}, TypeError, "floating point"),
        ({"content": np.zeros((3, 8, 8))}, TypeError, "content must be a torch.Tensor, got ndarray"),
        ({"style": np.zeros((3, 8, 8))}, TypeError, "a style must be a torch.Tensor, got ndarray"),
        (
            {"content": torch.full((3, 8, 8), torch.nan)},
            ValueError,
            r"content must be in \[0, 1\], got values from nan",
        ),
        ({"content": torch.tensor([0.0, 254]).expand(3, 8, 2)}, ValueError, r"in \[0, 1\], got values from 0 to 254"),
        ({"style": torch.tensor([-1.0, 1]).expand(3, 8, 2)}, ValueError, "a style must be .* from -1 to 1"),
    ],
)
def test_wrong_arguments(network, arguments, error, message):
    valid = {"content": torch.rand(3, 8, 8), "style": torch.rand(3, 8, 8)}
    with pytest.raises(error, match=message):
        stylize(**{**valid, **arguments}, network=network)


def test_a_default_device_changes_nothing(network, photo, painting):
    """Not for pictures that are on another."""
    options = {"network": network, "tile": 32, "scales": 2, "keep_colors": True}
    expected = stylize(photo, painting, **options)
    with torch.device("meta"):
        found = stylize(photo, painting, **options)
    assert torch.equal(found, expected)
