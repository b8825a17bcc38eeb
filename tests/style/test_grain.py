"""Smoothing of what varies less than noise."""

import math

import pytest
import torch

from matroot.style.grain import GRAIN, LEAST, RADIUS, importance, without_grain, without_rings

from .examples import picture

LEVEL = 1 / 255


def noise(levels: float, size: int = 64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return levels * LEVEL * torch.randn(1, 3, size, size, generator=generator, dtype=torch.float64)


def test_noise_in_a_flat_area_goes():
    smooth = without_grain(0.5 + noise(1), GRAIN, tile=512)
    # The mean of n independent values has a deviation of 1/sqrt(n), twice for two means; 1/17 of the noise stays.
    assert (smooth - 0.5).std() < 0.2 * LEVEL


def test_edges_and_what_varies_much_stay():
    x = torch.zeros(1, 3, 40, 40, dtype=torch.float64)
    x[..., 20:] = 1
    assert (without_grain(x, GRAIN, tile=512) - x).abs().max() < LEVEL
    textured = 0.5 + noise(40)
    assert (without_grain(textured, GRAIN, tile=512) - textured).std() < 0.02 * textured.std()


def test_a_standard_deviation_of_so_many_levels_is_halved():
    # Alternating pixels: all windows have this deviation, and means that are nearly constant.
    x = 0.5 + GRAIN * LEVEL * (1 - 2 * (torch.arange(64 * 64).view(1, 1, 64, 64) % 2)).double().expand(1, 3, -1, -1)
    smooth = without_grain(x, GRAIN, tile=512)
    assert (smooth - 0.5).std() == pytest.approx(GRAIN * LEVEL / 2, rel=0.2)


def test_gradients_of_colour_stay():
    ramp = torch.linspace(0.2, 0.8, 256, dtype=torch.float64).expand(1, 3, 32, 256)
    inside = slice(2 * RADIUS, -2 * RADIUS)
    assert (without_grain(ramp, GRAIN, tile=512) - ramp)[..., inside].abs().max() < 0.1 * LEVEL


@pytest.mark.parametrize("tile", [8, 24, 40])
def test_tiled_is_whole(tile):
    x = picture(61, 83, seed=3)
    whole = without_grain(x, 30.0, tile=128)
    assert (whole - x).abs().max() > LEVEL
    torch.testing.assert_close(without_grain(x, 30.0, tile=tile), whole, rtol=0, atol=1e-12)


def test_share_of_the_smoothed_picture():
    x = 0.5 + noise(3)
    full = without_grain(x, GRAIN, tile=64)
    torch.testing.assert_close(without_grain(x, GRAIN, 0.25, tile=64), 0.25 * full + 0.75 * x)
    for levels, share in ((0.0, 1.0), (GRAIN, 0.0)):
        assert torch.equal(without_grain(x, levels, share, tile=64), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes(dtype):
    x = picture(30, 20, seed=1)
    found = without_grain(x.to(dtype), GRAIN, tile=64)
    assert found.dtype == dtype
    assert (found - without_grain(x, GRAIN, tile=64)).abs().max() < 2 * torch.finfo(dtype).eps


def test_pictures_smaller_than_a_window():
    x = torch.full((1, 3, 1, 2), 0.25)
    torch.testing.assert_close(without_grain(x, GRAIN, tile=64), x)


@pytest.mark.parametrize("levels", [-1.0, math.nan, math.inf])
def test_no_number_of_levels(levels):
    x = torch.zeros(1, 3, 8, 8)
    for function in (without_grain, importance, lambda *arguments, **tile: without_rings(x, *arguments, **tile)):
        with pytest.raises(ValueError, match="grain must be a number of levels from 0 on"):
            function(x, levels, tile=64)


def test_flat_areas_hardly_count_and_texture_does():
    x = torch.full((1, 3, 64, 64), 0.5, dtype=torch.float64)
    x[..., 32:] += noise(40)[..., 32:]
    counts = importance(x, GRAIN, tile=512)
    assert counts.shape == (1, 1, 64, 64)
    assert torch.equal(counts[..., : 32 - RADIUS], torch.full((1, 1, 64, 32 - RADIUS), LEAST, dtype=x.dtype))
    assert counts[..., 32:].min() > 0.9
    assert counts.max() < 1


def test_a_standard_deviation_of_so_many_levels_counts_half():
    x = 0.5 + GRAIN * LEVEL * (1 - 2 * (torch.arange(64 * 64).view(1, 1, 64, 64) % 2)).double().expand(1, 3, -1, -1)
    assert importance(x, GRAIN, tile=512).mean() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("tile", [8, 24, 40])
def test_importance_tiled_is_whole(tile):
    x = picture(61, 83, seed=3)
    whole, tiled = (importance(x, GRAIN, tile=side) for side in (128, tile))
    torch.testing.assert_close(tiled, whole, rtol=0, atol=1e-12)


def test_importance_has_the_precision_of_float32():
    x = picture(30, 20, seed=1).bfloat16()
    assert torch.equal(importance(x, GRAIN, tile=64), importance(x.float(), GRAIN, tile=64))
    assert importance(x, 0.0, tile=64) is None


def test_rings_in_a_flat_area_go_and_texture_stays():
    content = torch.full((1, 3, 96, 96), 0.4, dtype=torch.float64)
    content[..., 48:] += noise(40, 96)[..., 48:]
    columns = torch.arange(96, dtype=torch.float64)
    painted = 0.1 + 0.8 * content + 0.05 * torch.cos(columns)
    found = without_rings(painted, content, GRAIN, tile=512)
    flat, textured = slice(16, 48 - 2 * RADIUS), slice(48 + 2 * RADIUS, 80)
    assert (painted - 0.42)[..., flat].std() > 8 * LEVEL
    assert (found - 0.42)[..., flat].abs().max() < 1.5 * LEVEL
    assert (found - painted)[..., textured].std() < 0.05 * (painted - content)[..., textured].std()


def test_colours_of_flat_areas_stay_up_to_their_edges():
    content = torch.full((1, 3, 64, 128), 0.3, dtype=torch.float64)
    content[..., 64:] = 0.7
    painted = 0.5 * content + torch.tensor([0.0, 0.2, 0.4], dtype=torch.float64).view(1, 3, 1, 1)
    found = without_rings(painted, content, GRAIN, tile=512)
    assert (painted - content)[..., [0, -1]].diff().abs().min() > 50 * LEVEL
    assert (found - painted).abs().max() < 4 * LEVEL


@pytest.mark.parametrize("tile", [8, 24, 40])
def test_without_rings_tiled_is_whole(tile):
    content, painted = picture(61, 83, seed=3) ** 8, picture(61, 83, seed=4)
    whole, tiled = (without_rings(painted, content, GRAIN, tile=side) for side in (128, tile))
    assert (whole - painted).abs().max() > LEVEL
    torch.testing.assert_close(tiled, whole, rtol=0, atol=1e-12)
    half = without_rings(painted, content, GRAIN, 0.5, tile=tile)
    torch.testing.assert_close(half, (whole + painted) / 2)
    assert without_rings(painted, content, 0.0, tile=tile) is painted
    assert without_rings(painted, content, GRAIN, 0.0, tile=tile) is painted
