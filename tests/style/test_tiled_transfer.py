"""Tiles: that they cover a picture, bound memory and change nothing."""

import pytest
import torch

from matroot.style import tiled_transfer
from matroot.style.tiled_transfer import reproduce_by_tiles, statistics_by_tiles, stylize_by_tiles
from matroot.style.tiles import ALIGNMENT, Tile, tiles

from .examples import picture

ROUNDING = {"rtol": 0, "atol": 1e-11}
"""Sums in another order, 1e-15 in float64, amplified by three transforms with condition numbers of a few hundred; a
seam would be of the order of 0.1."""


@pytest.mark.parametrize(("height", "width", "size"), [(1, 1, 16), (31, 64, 16), (64, 33, 24), (40, 40, 13)])
def test_tiles_cover_a_picture_once(height, width, size):
    covered = torch.zeros(1, 1, height, width)
    for tile in tiles(height, width, size):
        assert tile.top % ALIGNMENT == tile.left % ALIGNMENT == 0
        tile.of(covered).add_(1)
    assert (covered == 1).all()


def test_a_tile_of_features_at_a_stride():
    x = torch.arange(25).view(1, 1, 5, 5)
    assert torch.equal(Tile(8, 16, 24, 33).of(x, stride=8), x[..., 1:3, 2:5])


def test_tiles_must_have_pixels():
    with pytest.raises(ValueError, match="at least one pixel"):
        tiles(4, 4, 0)


@pytest.mark.parametrize("tile", [16, 56])
@pytest.mark.parametrize("strength", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("transform", ["transport", "whitening"])
@pytest.mark.parametrize("counted", [False, True])
def test_tiled_is_whole(network, style, tile, strength, transform, counted):
    large = picture(147, 93, seed=5)
    statistics = network.statistics(style)
    options = {"transform": transform, "importance": 1e-3 + picture(147, 93, seed=6)[:, :1] if counted else None}
    whole = network.stylize(large, statistics, strength, **options)
    assert whole.std() > 0.02  # there is something to compare
    tiled = stylize_by_tiles(network, large, statistics, strength, tile=tile, **options)
    torch.testing.assert_close(tiled, whole, **ROUNDING)


def test_statistics_by_tiles(network):
    large = picture(147, 93, seed=5)
    whole, tiled = network.statistics(large), statistics_by_tiles(network, large, tile=40)
    torch.testing.assert_close(tiled.means, whole.means, **ROUNDING)
    torch.testing.assert_close(tiled.roots, whole.roots, **ROUNDING)


@pytest.mark.parametrize(
    ("name", "autoencoder"),
    [
        ("ENCODER_CONTEXT", False),
        ("PAINTER_CONTEXT", False),
        ("AUTOENCODER_CONTEXT", True),
    ],
)
def test_no_context_is_larger_than_it_must_be(network, style, monkeypatch, name, autoencoder):
    # With 4 pixels less tiles differ from the whole: what the tests above compare can differ.
    large = picture(147, 93, seed=5)
    statistics = network.statistics(style)
    whole = network.stylize(large, statistics, 0.0 if autoencoder else 1.0)
    monkeypatch.setattr(tiled_transfer, name, getattr(tiled_transfer, name) - 4)
    tiled = stylize_by_tiles(network, large, statistics, 0.0 if autoencoder else 1.0, tile=16)
    assert (tiled - whole).abs().max() > 1e-6


def test_tiles_bound_what_is_computed_at_once(network, style, monkeypatch):
    sizes = []
    encode = type(network).encode

    def recorded(self, images, *arguments, **options):
        sizes.append(images.shape[-2:])
        return encode(self, images, *arguments, **options)

    monkeypatch.setattr(type(network), "encode", recorded)
    large = picture(147, 93, seed=5)
    stylize_by_tiles(network, large, network.statistics(style), tile=24)
    assert max(max(size) for size in sizes[1:]) <= 24 + 2 * tiled_transfer.PAINTER_CONTEXT


@pytest.mark.parametrize(("side", "at_once"), [(45, False), (46, True)])
def test_as_many_pixels_as_two_tiles_are_computed_at_once(network, style, side, at_once):
    large, statistics, told = picture(60, 70, seed=5), network.statistics(style), []  # 2 x 46^2 > 60 x 70 > 2 x 45^2
    stylize_by_tiles(network, large, statistics, tile=side, progress=told.append)
    assert (len(told) == 1) == at_once


@pytest.mark.parametrize(("tile", "strength"), [(32, 1.0), (32, 0.0), (256, 1.0)])
def test_progress_ends_at_one(network, style, tile, strength):
    told = []
    large = picture(60, 70, seed=5)
    stylize_by_tiles(network, large, network.statistics(style), strength, tile=tile, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_nothing_is_recorded_for_gradients(network, content):
    assert not reproduce_by_tiles(network, content.requires_grad_(), tile=16).requires_grad
