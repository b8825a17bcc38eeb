"""Image files of every kind, good and bad."""

import os
import struct
import zlib

import pytest
import torch
from PIL import Image

from matroot.style.images import ImageError, read, write

from .image_files import decoded, encoded, image_of, in_levels

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM"])
def test_levels_are_read_exactly(tmp_path, levels, format):
    assert torch.equal(in_levels(decoded(tmp_path, encoded(image_of(levels), format))), levels)


UPRIGHT = {
    1: lambda x: x,
    2: lambda x: x.flip(-1),
    3: lambda x: x.flip(-1, -2),
    4: lambda x: x.flip(-2),
    5: lambda x: x.mT,
    6: lambda x: x.mT.flip(-1),
    7: lambda x: x.mT.flip(-1, -2),
    8: lambda x: x.mT.flip(-2),
}
"""What undoes each of the orientations of EXIF."""


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_pictures_are_upright(tmp_path, levels, orientation):
    exif = Image.Exif()
    exif[274] = orientation
    found = decoded(tmp_path, encoded(image_of(levels), "PNG", exif=exif))
    assert torch.equal(in_levels(found), UPRIGHT[orientation](levels))


def test_grey(tmp_path, levels):
    found = decoded(tmp_path, encoded(image_of(levels[:1], "L"), "PNG"))
    assert torch.equal(in_levels(found), levels[:1].expand(3, -1, -1))


def test_one_bit(tmp_path):
    found = decoded(tmp_path, encoded(Image.new("1", (4, 3), 1), "PNG"))
    assert torch.equal(found, torch.ones(3, 3, 4))


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits(tmp_path, format):
    values = torch.tensor([[0, 1, 255, 256, 40000, 65535]])
    image = Image.frombytes("I;16", (6, 1), struct.pack("<6H", *values[0].tolist()))
    found = decoded(tmp_path, encoded(image, format))
    torch.testing.assert_close(found, (values / 65535).expand(3, 1, 6))


def test_floating_point(tmp_path):
    image = Image.frombytes("F", (4, 1), struct.pack("<4f", 0.25, -1.0, 2.0, float("nan")))
    found = decoded(tmp_path, encoded(image, "TIFF"))
    assert found[0].tolist() == [[0.25, 0.0, 1.0, 0.0]]


def test_palette(tmp_path, levels):
    image = image_of(levels).quantize(16)
    expected = torch.frombuffer(bytearray(image.convert("RGB").tobytes()), dtype=torch.uint8)
    for format in ("PNG", "GIF"):
        found = in_levels(decoded(tmp_path, encoded(image, format)))
        assert torch.equal(found.permute(1, 2, 0).flatten(), expected)


def test_cmyk(tmp_path):
    found = decoded(tmp_path, encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "TIFF"))
    torch.testing.assert_close(found, torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1).expand(3, 8, 8))


def test_alpha(tmp_path, levels):
    with_alpha = torch.cat((levels, levels[:1]))
    assert torch.equal(in_levels(decoded(tmp_path, encoded(image_of(with_alpha, "RGBA"), "PNG"))), with_alpha)
    grey = decoded(tmp_path, encoded(image_of(levels[:2], "LA"), "PNG"))
    assert torch.equal(in_levels(grey), torch.cat((levels[:1].expand(3, -1, -1), levels[1:2])))
    one_color = image_of(levels).quantize(8)
    assert decoded(tmp_path, encoded(one_color, "PNG", transparency=0)).shape == (4, 5, 7)


def test_opaque_alpha_is_none(tmp_path, levels):
    opaque = torch.cat((levels, torch.full((1, 5, 7), 255, dtype=torch.uint8)))
    assert torch.equal(in_levels(decoded(tmp_path, encoded(image_of(opaque, "RGBA"), "PNG"))), levels)


def test_of_several_frames_the_first(tmp_path):
    first, second = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    found = decoded(tmp_path, encoded(first, "WEBP", save_all=True, append_images=[second], lossless=True))
    assert in_levels(found)[:, 0, 0].tolist() == [255, 0, 0]


def test_damaged_exif_is_ignored(tmp_path, levels):
    found = decoded(tmp_path, encoded(image_of(levels), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"))
    assert torch.equal(in_levels(found), levels)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_size(width: int, height: int) -> bytes:
    """A PNG that promises so many pixels and has none."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no image of a known format"),
        (b"a text, and no image", "no image of a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "no image of a known format"),
        (b"\x89PNG\r\n\x1a\n", "no image of a known format|damaged"),
        (png_of_size(9, 9), "damaged"),
        (png_of_size(0, 9), "no image of a known format|damaged|no pixels"),
        (b"P6 0 4 255\n", "no image of a known format|damaged|no pixels"),
        (png_of_size(12_000, 12_000), "too large: 12000 x 12000, more than 100000000 pixels"),
        (png_of_size(60_000, 60_000), "too large"),
    ],
    ids=["empty", "text", "postscript", "signature", "no-data", "zero-png", "zero-ppm", "large", "bomb"],
)
def test_files_that_are_no_pictures(tmp_path, data, message):
    with pytest.raises(ImageError, match=message) as raised:
        decoded(tmp_path, data)
    assert str(tmp_path / "image") in str(raised.value)


def test_the_limit_of_pixels(tmp_path, levels):
    data = encoded(image_of(levels), "PNG")
    assert decoded(tmp_path, data, max_pixels=35).shape == (3, 5, 7)
    with pytest.raises(ImageError, match="too large: 7 x 5, more than 34 pixels"):
        decoded(tmp_path, data, max_pixels=34)


def test_what_is_no_file(tmp_path):
    with pytest.raises(ImageError, match=f"cannot read {tmp_path}: it is no file"):
        read(tmp_path)
    with pytest.raises(ImageError, match="No such file"):
        read(tmp_path / "none.png")
    with pytest.raises(ImageError, match="cannot read"):
        read(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImageError, match="it is no file"):
        read(tmp_path / "pipe")


@pytest.mark.parametrize("format", FORMATS)
def test_damage_is_an_image_error_or_none(tmp_path, levels, format):
    """Cut at every length and with bytes changed, a file is read or refused, and nothing else happens."""
    data = encoded(image_of(levels), format)
    generator = torch.Generator().manual_seed(0)
    damaged = [data[: k * len(data) // 60] for k in range(60)]
    for _ in range(60):
        changed = bytearray(data)
        for position in torch.randint(0, len(data), (3,), generator=generator).tolist():
            changed[position] ^= 0xA5
        damaged.append(bytes(changed))
    refused = 0
    for each in damaged:
        try:
            picture = decoded(tmp_path, each, max_pixels=10_000)
        except ImageError:
            refused += 1
        else:
            assert picture.shape[0] in (3, 4)
    assert refused > 10


@pytest.mark.parametrize("name", ["a.png", "a.PNG"])
def test_written_levels_are_read_again(tmp_path, levels, name):
    for expected in (levels, torch.cat((levels, levels[:1]))):
        write(tmp_path / name, expected.float() / 255)
        assert torch.equal(in_levels(read(tmp_path / name)), expected)


@pytest.mark.parametrize("name", ["a.jpg", "a.jpeg", "a.webp"])
def test_lossy_formats(tmp_path, name):
    smooth = torch.linspace(0, 1, 64).expand(3, 48, 64)
    write(tmp_path / name, smooth)
    # Four levels of eight bits.
    assert (read(tmp_path / name) - smooth).abs().max() < 4 / 255


def test_transparent_parts_are_white_in_jpeg(tmp_path):
    write(tmp_path / "a.jpg", torch.zeros(4, 16, 16))
    assert torch.equal(read(tmp_path / "a.jpg"), torch.ones(3, 16, 16))


def test_values_outside_are_clipped(tmp_path):
    write(tmp_path / "a.png", torch.tensor([-1.0, 0.5, 2.0]).view(3, 1, 1))
    assert in_levels(read(tmp_path / "a.png")).flatten().tolist() == [0, 128, 255]


@pytest.mark.parametrize("name", ["a", "a.bmp", "a.jpg.txt"])
def test_other_suffixes(tmp_path, name):
    with pytest.raises(ImageError, match=r"expected a suffix of \.png, \.jpg, \.jpeg, \.webp"):
        write(tmp_path / name, torch.zeros(3, 4, 4))


def test_written_whole_or_not_at_all(tmp_path, fill_disk):
    write(tmp_path / "a.png", torch.zeros(3, 4, 4))
    fill_disk()
    with pytest.raises(ImageError, match=r"cannot write .*a\.png: No space left on device"):
        write(tmp_path / "a.png", torch.ones(3, 4, 4))
    assert torch.equal(read(tmp_path / "a.png"), torch.zeros(3, 4, 4))
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_no_folder_to_write_to(tmp_path):
    with pytest.raises(ImageError, match="No such file or directory"):
        write(tmp_path / "none" / "a.png", torch.zeros(3, 4, 4))


def test_too_large_for_the_format(tmp_path):
    with pytest.raises(ImageError, match=r"cannot write .*a\.webp"):
        write(tmp_path / "a.webp", torch.zeros(3, 1, 20_000))
    assert not list(tmp_path.iterdir())
