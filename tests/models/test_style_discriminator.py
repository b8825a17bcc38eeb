"""Discriminators of style exchange."""

from itertools import pairwise

import pytest
import torch

from matroot.models.style_discriminator import StyleDiscriminator, smallest_image


def test_published_size_and_shapes():
    """Four convolutions of 4x4 and one of 1x1, three times; a sixteenth of each scale's side."""
    with torch.device("meta"):
        network, images = StyleDiscriminator(), torch.empty(2, 3, 216, 216)
        channels = (3, 64, 128, 256, 512)
        one = sum(16 * a * b + b for a, b in pairwise(channels)) + 512 + 1
        assert sum(p.numel() for p in network.parameters()) == 3 * one
        assert [score.shape for score in network(images)] == [(2, 1, 13, 13), (2, 1, 6, 6), (2, 1, 3, 3)]


def test_scales_see_smaller_images():
    """Each the means of 3x3 pixels of the one before, at every second; of fewer at the border."""
    network = StyleDiscriminator((4, 8), scales=3)
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    scores = network(images)
    for scale, score in zip(network.scales, scores, strict=True):
        torch.testing.assert_close(score, scale(images))
        padded = torch.nn.functional.pad(images, (1, 0, 1, 0), value=torch.nan)
        images = padded.unfold(2, 3, 2).unfold(3, 3, 2).flatten(4).nanmean(-1)
    assert scores[0].std() > 0


@pytest.mark.parametrize(("channels", "scales"), [((2, 2), 1), ((2, 2), 3), ((2, 2, 2, 2), 2)])
def test_the_smallest_image(channels, scales):
    network, side = StyleDiscriminator(channels, scales), smallest_image(channels, scales)
    assert network(torch.zeros(1, 3, side, side))[-1].numel() == 1
    with pytest.raises(RuntimeError):
        network(torch.zeros(1, 3, side // 2, side // 2))
