"""Colours that are kept, and transparency."""

import pytest
import torch

from matroot.style.color import luma, split_alpha, with_colors_of

from .conftest import picture


def test_luma_of_grey_is_that_grey():
    torch.testing.assert_close(luma(torch.full((3, 2, 2), 0.4)), torch.full((1, 2, 2), 0.4))


def test_colour_differences_are_those_of_the_content():
    content, painted = 0.4 + 0.2 * picture(20, 30, seed=1), 0.4 + 0.2 * picture(20, 30, seed=2)
    found = with_colors_of(content, painted)
    torch.testing.assert_close(found - luma(found), content - luma(content))


def test_brightness_is_the_painted_one_with_the_contents_moments():
    content, painted = 0.4 + 0.2 * picture(20, 30, seed=1), 0.1 * picture(20, 30, seed=2)
    found = luma(with_colors_of(content, painted)).flatten()
    torch.testing.assert_close(found.mean(), luma(content).mean())
    torch.testing.assert_close(found.std(), luma(content).std())
    assert torch.corrcoef(torch.stack((found, luma(painted).flatten())))[0, 1] > 1 - 1e-9


def test_a_flat_painting_leaves_flat_brightness():
    content = 0.4 + 0.2 * picture(20, 30, seed=1)
    found = with_colors_of(content, torch.full_like(content, 0.9))
    assert luma(found).std() < 1e-9


def test_results_stay_in_range():
    found = with_colors_of(picture(20, 30, seed=1).round(), picture(20, 30, seed=2).round())
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


def test_nothing_but_transparency():
    colors, _ = split_alpha(torch.zeros(4, 3, 3))
    assert torch.equal(colors, torch.zeros(3, 3, 3))


def test_other_numbers_of_channels():
    with pytest.raises(ValueError, match="1 to 4 channels"):
        split_alpha(torch.rand(5, 3, 3))
