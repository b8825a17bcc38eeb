"""Moments, styles and the transform between them, against direct formulas in float64."""

import math

import pytest
import torch

from matroot.style.statistics import Coloring, Moments, StyleStatistics, blend
from matroot.style.tiles import MergedMoments
from matroot.style.transforms import OptimalTransport, Whitening

EXACT = {"rtol": 1e-9, "atol": 1e-10}
"""Covariances here have condition numbers below 1e4, which float64 leaves eleven digits of."""


def features(seed: int, channels: int = 5, size: tuple[int, int] = (9, 11), batch: int = 2) -> torch.Tensor:
    """Correlated features with a mean of their own."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(batch, channels, *size, generator=generator, dtype=torch.float64)
    mix = torch.randn(channels, channels, generator=generator, dtype=torch.float64)
    return torch.einsum("ij,bjhw->bihw", mix, noise) + torch.arange(channels).view(-1, 1, 1)


def style_of(x: torch.Tensor, eps: float = 0.0) -> StyleStatistics:
    return StyleStatistics.of([Moments.of(x)], eps)


WHITENING = Whitening()
EXACT_TRANSFORMS = pytest.mark.parametrize("transform", [WHITENING, OptimalTransport(max_gain=math.inf)], ids=repr)
ALL_TRANSFORMS = pytest.mark.parametrize("transform", [WHITENING, OptimalTransport()], ids=repr)


def coloring(content, style, strength: float | torch.Tensor = 1.0, eps: float = 0.0, transform=WHITENING):
    return Coloring.between(Moments.of(content), style.means[0], style.roots[0], strength, eps, transform)


def test_moments_are_those_of_torch():
    x = features(0)
    found = Moments.of(x)
    for k, each in enumerate(x.flatten(2)):
        torch.testing.assert_close(found.mean[k, :, 0], each.mean(1))
        torch.testing.assert_close(found.covariance[k], torch.cov(each))


def test_order_of_positions_does_not_matter():
    x = features(0)
    order = torch.randperm(99, generator=torch.Generator().manual_seed(3))
    shuffled = x.flatten(2)[..., order].view_as(x)
    found, expected = Moments.of(shuffled), Moments.of(x)
    torch.testing.assert_close(found.mean, expected.mean)
    torch.testing.assert_close(found.covariance, expected.covariance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_accumulated_in_float32(dtype):
    x = features(0).to(dtype)
    found = Moments.of(x)
    assert found.mean.dtype == found.covariance.dtype == torch.float32
    torch.testing.assert_close(found.covariance, Moments.of(x.float()).covariance)


@EXACT_TRANSFORMS
def test_coloured_features_have_the_statistics_of_the_style(transform):
    content, other = features(0), features(1, size=(6, 20))
    found = Moments.of(coloring(content, style_of(other), transform=transform)(content))
    torch.testing.assert_close(found.mean, Moments.of(other).mean, **EXACT)
    torch.testing.assert_close(found.covariance, Moments.of(other).covariance, **EXACT)


@ALL_TRANSFORMS
def test_one_style_serves_a_batch(transform):
    content, other = features(0, batch=3), features(1, batch=1)
    found = Moments.of(coloring(content, style_of(other), transform=transform)(content))
    torch.testing.assert_close(found.mean, Moments.of(other).mean.expand(3, -1, -1), **EXACT)


@ALL_TRANSFORMS
def test_strength_blends_with_the_content(transform):
    content, style = features(0), style_of(features(1))
    full = coloring(content, style, transform=transform)(content)
    half = coloring(content, style, 0.25, transform=transform)(content)
    torch.testing.assert_close(half, 0.25 * full + 0.75 * content, **EXACT)
    each = coloring(content, style, torch.tensor([0.0, 1.0], dtype=torch.float64), transform=transform)(content)
    torch.testing.assert_close(each, torch.stack((content[0], full[1])), **EXACT)


@ALL_TRANSFORMS
def test_a_picture_in_its_own_style_stays_as_it_is(transform):
    # Whatever eps is: both covariances have it.
    content = features(0)
    found = coloring(content, style_of(content, eps=0.1), eps=0.1, transform=transform)(content)
    torch.testing.assert_close(found, content, **EXACT)


@ALL_TRANSFORMS
def test_flat_content_takes_the_mean_of_the_style(transform):
    # In float32, where subtracting the mean leaves rounding that whitening without eps would amplify.
    content = torch.full((1, 5, 9, 9), 0.3) + 1e-7 * features(0, size=(9, 9), batch=1).float()
    style = style_of(features(1, batch=1).float(), eps=1e-4)
    found = coloring(content, style, eps=1e-4, transform=transform)(content)
    torch.testing.assert_close(found, style.means[0].unsqueeze(-1).expand_as(found), rtol=0, atol=1e-2)


@ALL_TRANSFORMS
def test_shape_dtype_and_memory_format(transform):
    content = features(0).bfloat16()
    found = coloring(content, style_of(features(1).float()), transform=transform)(content)
    assert found.shape == content.shape
    assert found.dtype == torch.bfloat16
    assert found.is_contiguous(memory_format=torch.channels_last)


@ALL_TRANSFORMS
def test_autocast_does_not_reach_the_transform(transform):
    content, style = features(0).float(), style_of(features(1).float())
    expected = coloring(content, style, transform=transform)(content)
    with torch.autocast("cpu", torch.bfloat16):
        found = coloring(content, style, transform=transform)(content)
    assert torch.equal(found, expected)


def test_blending_styles_blends_coloured_features():
    content, one, two = features(0), style_of(features(1)), style_of(features(2))
    found = coloring(content, blend([one, two], [1, 3]))(content)
    expected = 0.25 * coloring(content, one)(content) + 0.75 * coloring(content, two)(content)
    torch.testing.assert_close(found, expected, **EXACT)


def test_transport_to_a_blend_has_the_statistics_of_its_roots():
    content, blended = features(0), blend([style_of(features(1)), style_of(features(2))], [1, 3])
    found = Moments.of(coloring(content, blended, transform=OptimalTransport(max_gain=math.inf))(content))
    torch.testing.assert_close(found.mean, blended.means[0], **EXACT)
    torch.testing.assert_close(found.covariance, blended.covariances[0], **EXACT)


def test_blending_ends():
    one, two = style_of(features(1)), style_of(features(2))
    for found, expected in ((blend([one, two], [2, 0]), one), (blend([two, two, two]), two), (blend([one]), one)):
        torch.testing.assert_close(found.means, expected.means, **EXACT)
        torch.testing.assert_close(found.roots, expected.roots, **EXACT)


def test_covariances_are_the_squares_of_the_roots():
    x = features(1)
    torch.testing.assert_close(style_of(x).covariances[0], Moments.of(x).covariance, **EXACT)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.5], [0.0, 0.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_weights_that_make_no_blend(weights):
    style = style_of(features(1))
    with pytest.raises(ValueError, match="one for each of 2 styles"):
        blend([style, style], weights)


def test_no_style():
    with pytest.raises(ValueError, match="at least one style"):
        blend([])


@pytest.mark.parametrize("batch", [1, 2])
def test_positions_count_as_often_as_they_are_repeated(batch):
    x = features(0, size=(4, 5))
    counts = torch.randint(1, 4, (batch, 1, 4, 5), generator=torch.Generator().manual_seed(1))
    found = Moments.of(x, counts.double() / 7)
    for k, each in enumerate(x.flatten(2)):
        repeated = each.repeat_interleave(counts[k % batch].flatten(), dim=1)
        torch.testing.assert_close(found.mean[k, :, 0], repeated.mean(1))
        torch.testing.assert_close(found.covariance[k], torch.cov(repeated, correction=0) * 20 / 19)


def test_equal_counts_change_nothing():
    x = features(0)
    found, expected = Moments.of(x, torch.full_like(x[:1, :1], 0.3)), Moments.of(x)
    torch.testing.assert_close(found.mean, expected.mean)
    torch.testing.assert_close(found.covariance, expected.covariance)


@pytest.mark.parametrize("batch", [None, 1, 2])
def test_merged_moments_are_those_of_the_whole(batch):
    x = features(0, size=(12, 10)) + 1e3
    generator = torch.Generator().manual_seed(1)
    counts = None if batch is None else torch.rand(batch, 1, 12, 10, generator=generator, dtype=x.dtype)
    merged = MergedMoments()
    parts = [
        (..., slice(a, b), slice(c, d)) for a, b, c, d in ((0, 1, 0, 1), (0, 1, 1, 10), (1, 7, 0, 10), (7, 12, 0, 10))
    ]
    for part in parts:
        merged.add(x[part], None if counts is None else counts[part])
    found, expected = merged.moments(), Moments.of(x, counts)
    torch.testing.assert_close(found.mean, expected.mean)
    # Deviations from a mean of 1e3 have three digits less.
    torch.testing.assert_close(found.covariance, expected.covariance, rtol=1e-9, atol=1e-9)


def test_one_position_has_no_covariance():
    merged = MergedMoments()
    merged.add(features(0)[..., :1, :1])
    assert torch.equal(merged.moments().covariance, torch.zeros(2, 5, 5, dtype=torch.float64))


def test_the_mean_of_what_counts_has_the_digits_of_the_plain_mean():
    """Also where it is large against the deviations."""
    x = features(0, size=(40, 50)).float() + 1e3
    counts = torch.rand(1, 1, 40, 50, generator=torch.Generator().manual_seed(1)) + 0.1
    found, expected = Moments.of(x, counts), Moments.of(x.double(), counts.double())
    assert (found.mean - expected.mean).abs().max() < 2e-7 * 1e3
    torch.testing.assert_close(found.covariance.double(), expected.covariance, rtol=1e-3, atol=1e-3)
