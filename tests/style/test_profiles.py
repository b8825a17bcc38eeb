"""Images with a profile are read in sRGB, whatever kind of pixels they have."""

import struct

import pytest
import torch
from PIL import Image, ImageCms

from .image_files import decoded, encoded, image_of, in_levels


def linear_profile() -> bytes:
    """sRGB with an exponent of 1 in place of 2.4."""
    same = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return same.replace(b"\x00\x02\x66\x66", b"\x00\x01\x00\x00")


def linear_grey_profile() -> bytes:
    """A header, the white of D50, and levels that are proportional to light."""
    white = struct.pack(">3I", 0xF6D6, 0x10000, 0xD32D)
    kinds = struct.pack(">4sI4s4s4s", b"none", 0x02100000, b"mntr", b"GRAY", b"XYZ ")
    header = kinds + bytes(12) + b"acsp" + bytes(28) + white + bytes(48)
    table = struct.pack(">I4sII4sII", 2, b"kTRC", 156, 12, b"wtpt", 168, 20)
    body = table + b"curv" + bytes(8) + b"XYZ " + bytes(4) + white
    return struct.pack(">I", 4 + len(header) + len(body)) + header + body


def test_profiles_are_converted(tmp_path, levels):
    same = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    found = in_levels(decoded(tmp_path, encoded(image_of(levels), "PNG", icc_profile=same)))
    assert (found.int() - levels.int()).abs().max() <= 1
    # With an exponent of 1 in place of 2.4 the stored levels are light, and sRGB is brighter.
    linear = linear_profile()
    assert linear != same
    grey = torch.full((3, 2, 2), 128, dtype=torch.uint8)
    found = in_levels(decoded(tmp_path, encoded(image_of(grey), "PNG", icc_profile=linear)))
    assert found.min() > 150
    # A profile without meaning for these pixels, and no profile at all.
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    for profile in (lab, b"nonsense"):
        found = decoded(tmp_path, encoded(image_of(levels), "PNG", icc_profile=profile))
        assert torch.equal(in_levels(found), levels)


@pytest.mark.parametrize("transparency", [{}, {"transparency": 0}])
def test_profiles_of_palettes_are_converted(tmp_path, levels, transparency):
    image, profile = image_of(levels).quantize(8), linear_profile()
    found = decoded(tmp_path, encoded(image, "PNG", icc_profile=profile, **transparency))
    expected = decoded(tmp_path, encoded(image.convert("RGB"), "PNG", icc_profile=profile))
    assert torch.equal(found[:3], expected)
    assert len(found) == 3 + len(transparency)


@pytest.mark.parametrize("mode", ["L", "LA"])
def test_profiles_of_grey_are_converted(tmp_path, mode):
    image = Image.new(mode, (3, 2), 128 if mode == "L" else (128, 77))
    found = in_levels(decoded(tmp_path, encoded(image, "PNG", icc_profile=linear_grey_profile())))
    light = 255 * (1.055 * (128 / 255) ** (1 / 2.4) - 0.055)  # as sRGB has it
    assert (found[:3] - light).abs().max() <= 1
    assert found[3:].unique().tolist() == ([] if mode == "L" else [77])
    # One of red, green and blue says nothing of grey.
    found = decoded(tmp_path, encoded(image, "PNG", icc_profile=linear_profile()))
    assert torch.equal(found, decoded(tmp_path, encoded(image, "PNG")))


def test_a_transparent_colour_is_that_before_its_profile(tmp_path, levels):
    image = image_of(levels)
    one = tuple(levels[:, 2, 3].tolist())
    found = decoded(tmp_path, encoded(image, "PNG", icc_profile=linear_profile(), transparency=one))
    assert found[3].eq(0).nonzero().tolist() == [[2, 3]]
