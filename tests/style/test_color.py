"""Colours that are kept, and transparency."""

import pytest
import torch

from matroot.style.color import COLOR_EPS, recolored, split_alpha
from matroot.style.statistics import Moments

from .examples import picture


def test_colours_have_the_moments_of_the_other_picture():
    # Both far from black and white, so that nothing is clipped.
    painting, photo = 0.3 + 0.4 * picture(20, 30, seed=1), 0.4 + 0.2 * picture(9, 11, seed=2)
    found, expected = Moments.of(recolored(painting, photo)), Moments.of(photo)
    torch.testing.assert_close(found.mean, expected.mean)
    # Both covariances have eps added, of variances of about 1e-3.
    torch.testing.assert_close(found.covariance, expected.covariance, rtol=0, atol=COLOR_EPS)


def test_own_colours_stay():
    painting = picture(20, 30, seed=1)
    torch.testing.assert_close(recolored(painting, painting), painting)


def test_colours_of_a_flat_picture():
    flat = torch.full((1, 3, 4, 4), 0.25, dtype=torch.float64)
    # Within three standard deviations of sqrt(eps).
    assert (recolored(picture(20, 30, seed=1), flat) - 0.25).abs().max() < 3 * COLOR_EPS**0.5


def test_results_stay_in_range():
    found = recolored(picture(20, 30, seed=1), picture(20, 30, seed=2).round())
    assert found.min() == 0
    assert found.max() == 1


@pytest.mark.parametrize(("channels", "has_alpha"), [(1, False), (2, True), (3, False), (4, True)])
def test_pictures_of_one_to_four_channels(channels, has_alpha):
    x = torch.rand(2, channels, 3, 5)
    colors, alpha = split_alpha(x)
    assert colors.shape == (2, 3, 3, 5)
    assert (alpha is not None) == has_alpha
    if not has_alpha:
        assert torch.equal(colors, x.expand(2, 3, 3, 5))


def test_transparent_parts_take_the_mean_of_the_rest():
    x = torch.rand(4, 6, 6)
    x[3] = 1
    x[:3, :2], x[3, :2] = 7.0, 0
    colors, alpha = split_alpha(x)
    assert torch.equal(colors[:, 2:], x[:3, 2:])
    torch.testing.assert_close(colors[:, :2], x[:3, 2:].mean((1, 2))[:, None, None].expand(3, 2, 6))
    assert alpha is not None
    assert torch.equal(alpha, x[3:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_transparency_in_half_precision(dtype):
    """Of more pixels than float16 can count."""
    x = torch.full((2, 300, 300), 0.25, dtype=dtype)
    x[1] = 0.75
    colors, alpha = split_alpha(x)
    assert alpha is not None
    assert colors.dtype == alpha.dtype == dtype
    assert torch.equal(colors, x[:1].expand(3, -1, -1))


def test_nothing_but_transparency():
    colors, _ = split_alpha(torch.zeros(4, 3, 3))
    assert torch.equal(colors, torch.zeros(3, 3, 3))


def test_other_numbers_of_channels():
    with pytest.raises(ValueError, match="1 to 4 channels"):
        split_alpha(torch.rand(5, 3, 3))
