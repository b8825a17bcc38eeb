"""Distributions of random rectangles; 4000 draws, so a share is known to 0.03 (four standard deviations of 1/2)."""

import pytest
import torch

from matroot.train.data.seeding import generator_for
from matroot.train.data.windows import (
    CORNER_SCALES,
    corner_windows,
    erased_rectangles,
    flips,
    offset_windows,
    resized_windows,
)

COUNT = 4000


@pytest.mark.parametrize("draw", [resized_windows, corner_windows])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (20, 90), (90, 20)])
def test_windows_are_inside(draw, height, width):
    top, left, heights, widths = draw(COUNT, height, width, generator_for(0)).unbind(1)
    assert min(top.min(), left.min()) >= 0
    assert min(heights.min(), widths.min()) >= 1
    assert (top + heights).max() <= height
    assert (left + widths).max() <= width


def test_offsets_are_uniform_and_reach_both_ends():
    windows = offset_windows(COUNT, (8, 3), 32, generator_for(0))
    for column, room in ((0, 8), (1, 3)):
        shares = windows[:, column].bincount() / COUNT
        assert len(shares) == room + 1
        assert (shares - 1 / (room + 1)).abs().max() < 0.03
    assert (windows[:, 2:] == 32).all()


def test_resized_windows_have_uniform_area_and_bounded_aspect():
    _, _, heights, widths = resized_windows(COUNT, 256, 256, generator_for(0)).unbind(1)
    areas = heights * widths / 256**2
    # Rounding of the sides moves an area by less than 1/100 here. Areas near 1 fit for few aspects: the middle counts.
    assert areas.min() >= 0.07
    assert ((areas < 0.4).float().mean() - (areas < 0.2).float().mean()).item() == pytest.approx(0.2 / 0.92, abs=0.05)
    aspects = widths / heights
    assert aspects.min() > 3 / 4 - 0.02
    assert aspects.max() < 4 / 3 + 0.02
    assert (aspects < 1).float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_a_window_that_never_fits_is_the_middle_square():
    """No aspect up to 4/3 and area above 0.08 fits into one row of 100 pixels."""
    assert resized_windows(3, 1, 100, generator_for(0)).tolist() == [[0, 49, 1, 1]] * 3


def test_corner_windows_are_corners_or_the_middle_at_neighbouring_scales():
    windows = corner_windows(COUNT, 100, 120, generator_for(0))
    sides = [int(100 * scale) for scale in CORNER_SCALES]
    seen = set()
    for top, left, height, width in windows.tolist():
        assert abs(sides.index(height) - sides.index(width)) <= 1
        above, beside = 100 - height, 120 - width
        assert (top, left) in {(0, 0), (0, beside), (above, 0), (above, beside), (above // 2, beside // 2)}
        seen.add((height, width))
    assert len(seen) == 10


def test_half_of_the_images_are_mirrored():
    assert flips(COUNT, generator_for(0)).float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_erased_rectangles():
    rectangles = erased_rectangles(COUNT, 64, 0.25, generator_for(0))
    top, left, heights, widths = rectangles.unbind(1)
    erased = heights > 0
    assert torch.equal(erased, widths > 0)
    assert erased.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert (top + heights).max() <= 64
    assert (left + widths).max() <= 64
    assert (heights * widths)[erased].float().mean().item() / 64**2 == pytest.approx(0.17, abs=0.02)
