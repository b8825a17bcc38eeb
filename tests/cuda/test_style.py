"""Style transfer on a GPU."""

import pytest
import torch

from matroot.style import load, stylize

from ..style.examples import photograph, picture, small_network


@pytest.mark.parametrize("tile", [32, 128])
@pytest.mark.parametrize(("dtype", "levels"), [(torch.float32, 0.1), (torch.float16, 0.3), (torch.bfloat16, 1.5)])
def test_the_picture_is_that_of_the_cpu(dtype, levels, tile):
    # In levels of eight bits, the mean over the picture; convolutions of float32 may be those of TF32.
    content, style = picture(90, 75, seed=1)[0], picture(64, 80, seed=2)[0]
    network = small_network(eps=1e-4)
    exact = stylize(content, style, network=network)
    for device in ("cpu", "cuda"):
        found = stylize(content.float().to(device), style.float(), network=network.to("cuda", dtype), tile=tile)
        assert found.device.type == device
        assert 255 * (found.double().cpu() - exact).abs().mean() < levels


@pytest.mark.parametrize("transform", ["transport", "whitening"])
@pytest.mark.parametrize(
    ("dtype", "mean", "largest"), [(torch.float32, 0.2, 2), (torch.float16, 0.2, 2), (torch.bfloat16, 1.0, 16)]
)
def test_a_photograph_looks_the_same(dtype, mean, largest, transform):
    """With the packaged weights, as far as the eye sees: in levels of eight bits. TF32 has the bits of
    float16.
    """
    content, style = photograph("china.jpg"), photograph("flower.jpg")
    expected = stylize(content, style, transform=transform, network=load())
    found = stylize(content, style, transform=transform, network=load().to("cuda", dtype), tile=128)
    difference = 255 * (found - expected).abs()
    assert difference.mean() < mean
    assert difference.max() < largest
