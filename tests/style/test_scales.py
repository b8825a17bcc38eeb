"""Transfer at several scales: what is painted at each, and that nothing else changes."""

import pytest
import torch

from matroot.style import stylize
from matroot.style.scales import SMALLEST, scales_for, transfer_by_scales

from .examples import picture, small_network


def nothing(fraction):
    pass


@pytest.mark.parametrize("scales", [1, 2, 3])
@pytest.mark.parametrize("size", [(128, 160), (131, 197)])
def test_without_a_transfer_the_picture_is_the_content(scales, size):
    content = picture(*size, seed=1)
    found = transfer_by_scales(content, scales, lambda x, pictures, progress: x, nothing)
    torch.testing.assert_close(found, content, rtol=0, atol=1e-12)


def test_what_is_painted_at_each_scale_adds_up():
    content = 0.5 * picture(128, 160, seed=1)
    sizes, changes = [], []

    def lighter(x, pictures, progress):
        sizes.append(tuple(x.shape[-2:]))
        changes.append((x - pictures).mean().item())
        return x + 0.1

    found = transfer_by_scales(content, 3, lighter, nothing)
    assert sizes == [(32, 40), (64, 80), (128, 160)]
    assert changes == pytest.approx([0, 0.1, 0.2])
    torch.testing.assert_close(found, content + 0.3, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [(2 * SMALLEST, 300), (1, 1), (5, 400)])
def test_scales_without_room_are_left_out(size):
    sizes = []
    content = torch.rand(1, 3, *size)
    transfer_by_scales(content, 5, lambda x, pictures, progress: sizes.append(tuple(x.shape[-2:])) or x, nothing)
    assert sizes[-1] == size
    assert len(sizes) == (2 if min(size) >= 2 * SMALLEST else 1)


@pytest.mark.parametrize(
    ("longest", "expected"),
    [(1, 1), (32, 1), (511, 1), (512, 1), (1023, 1), (1024, 2), (2047, 2), (2048, 3), (4096, 3), (10**6, 3)],
)
def test_large_pictures_have_more_scales(longest, expected):
    assert scales_for(longest, 1) == scales_for(1, longest) == scales_for(longest, longest) == expected


def test_how_many_is_chosen_by_the_size_of_the_result():
    network, style = small_network(), picture(40, 40, seed=2)[0]
    large = picture(70, 1100, seed=1)[0]
    for options, expected in (({}, 2), ({"max_size": 1000}, 1), ({"scales": 1}, 1)):
        found = stylize(large, style, network=network, **options)
        assert torch.equal(found, stylize(large, style, network=network, **(options | {"scales": expected})))
    two, one = (stylize(large, style, network=network, scales=scales) for scales in (2, 1))
    assert (two - one).abs().max() > 0.01


def test_scales_without_end_are_those_that_fit():
    content = torch.rand(1, 3, 70, 70)
    many, two = (
        transfer_by_scales(content, count, lambda x, pictures, progress: x.sqrt(), nothing) for count in (10**15, 2)
    )
    assert torch.equal(many, two)


def test_strokes_of_one_pixel_become_broad():
    """Noise that the transfer adds at a fourth of the size is smooth at the whole."""
    generator = torch.Generator().manual_seed(0)

    def noisy(x, pictures, progress):
        return x + 0.1 * torch.randn(x.shape, generator=generator, dtype=x.dtype) if x.shape[-1] == 40 else x

    found = transfer_by_scales(torch.full((1, 3, 160, 160), 0.5), 3, noisy, nothing)
    noise = found - 0.5
    assert noise.std() > 0.05
    assert noise.diff(dim=-1).std() < 0.5 * noise.std()


def test_progress_ends_at_one():
    told = []

    def transfer(x, pictures, progress):
        progress(0.5)
        progress(1.0)
        return x

    transfer_by_scales(torch.rand(1, 3, 128, 128), 3, transfer, told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_stylize_at_several_scales(network, content, style):
    large = picture(147, 93, seed=5)
    one, two = (stylize(large, style, scales=scales, network=network) for scales in (1, 2))
    assert two.shape == large.shape
    assert (one - two).abs().mean() > 0.01
    assert torch.equal(stylize(content, style, scales=1, network=network), stylize(content, style, network=network))


def test_at_strength_zero_scales_change_nothing(network, style):
    large = picture(147, 93, seed=5)
    one, three = (stylize(large, style, 0.0, scales=scales, network=network) for scales in (1, 3))
    assert torch.equal(one, three)


def test_no_scale_is_refused(network, content, style):
    with pytest.raises(ValueError, match="scales must be at least 1, got 0"):
        stylize(content, style, scales=0, network=network)
