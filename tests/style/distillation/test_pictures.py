"""Pictures from folders and zip files, and crops of them."""

import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from matroot.style.distillation.batches import Batches, cut
from matroot.style.distillation.pictures import Pictures, PicturesError, read_pictures

from .tiny import tiny_recipe, write_pictures


def test_folders_and_zip_files_have_the_same_pictures(tmp_path):
    write_pictures(tmp_path / "a", 2, seed=1)
    write_pictures(tmp_path / "b", 1, seed=2)
    (tmp_path / "a" / "notes.txt").write_text("no picture")
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as file:
        for path in [*(tmp_path / "a").iterdir(), *(tmp_path / "b").iterdir()]:
            file.write(path, path.relative_to(tmp_path).as_posix())
    separate = read_pictures([str(tmp_path / "a"), str(tmp_path / "b")], crop=64)
    together = read_pictures([str(tmp_path / "both.zip")], crop=64)
    assert [picture.shape for picture in separate] == [(36, 40, 3), (36, 47, 3), (36, 40, 3)]
    for one, other in zip(separate, together, strict=True):
        np.testing.assert_array_equal(one, other)
    for part in (f"{tmp_path / 'both.zip'}:b", f"{tmp_path / 'both.zip'}:b/0.jpg", str(tmp_path / "b" / "0.jpg")):
        (picture,) = read_pictures([part], crop=64)
        np.testing.assert_array_equal(picture, separate[2])


def test_pictures_are_upright_unless_their_exif_data_are_damaged(tmp_path):
    stored, turned = Image.new("RGB", (40, 36)), Image.Exif()
    turned[274] = 6
    stored.save(tmp_path / "0.png", exif=turned)
    stored.save(tmp_path / "1.png", exif=b"Exif\0\0II*\0\xff")
    assert [picture.shape for picture in read_pictures([str(tmp_path)], crop=64)] == [(40, 36, 3), (36, 40, 3)]


def test_large_and_long_pictures_are_shrunk_to_what_crops_need(tmp_path):
    """A short side of 4/3 of the crop, and the middle of what is longer than twice that."""
    long = np.zeros((50, 200, 3), dtype=np.uint8)
    long[:, 50:150] = 200
    Image.fromarray(long).save(tmp_path / "long.png")
    (picture,) = read_pictures([str(tmp_path)], crop=15)
    assert picture.shape == (20, 40, 3)
    # The filter reaches three pixels of the result beyond its window, into the black.
    assert (picture[:, 3:-3] == 200).all()
    assert picture.min() > 150


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "there is no .*missing; expected a picture, or a folder"),
        ("empty", "empty has no pictures"),
        ("text.zip", r"text\.zip is no picture, no folder and no whole zip file"),
        ("broken", r"broken/x\.jpg cannot be read as a picture"),
        ("whole.zip:other", "other has no pictures"),
    ],
)
def test_sources_without_pictures_are_named(name, message, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.zip").write_text("no archive")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.jpg").write_bytes(b"\xff\xd8\xff no jpeg")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as file:
        file.writestr("folder/x.jpg", b"")
    with pytest.raises(PicturesError, match=message):
        read_pictures([str(tmp_path / name)], crop=16)


def ramps():
    """Two pictures of different sizes; red grows downwards, green to the right, a grey level a pixel."""

    def ramp(height, width):
        rows, columns = np.indices((height, width))
        return np.stack([rows, columns, np.full_like(rows, 7)], axis=-1).astype(np.uint8)

    return Pictures.of([ramp(20, 30), ramp(24, 16)])


def test_a_window_of_its_own_size_is_cut_out_pixel_by_pixel():
    pictures = ramps()
    images = cut(pictures, torch.tensor([1, 0]), torch.tensor([[4, 2, 8], [5, 9, 8]]), torch.tensor([False, True]), 8)
    # Positions are in float32 units of the canvas, so that pixels mix by a few times 24 * 2^-24.
    expected = torch.stack([pictures.pixels[1, :, 4:12, 2:10], pictures.pixels[0, :, 5:13, 9:17].flip(-1)]) / 255
    torch.testing.assert_close(images, expected, rtol=0, atol=1e-5)


def test_crops_stay_within_their_pictures():
    """Beyond a picture its border is repeated: the ramp would stop, and rows of a crop be equal."""
    recipe = tiny_recipe(pairs=64, crop=32, recolored=0.0, exchanged=0.5)
    pairs = Batches(ramps(), 1, recipe).step(0)
    for images in (pairs.content, pairs.style):
        inner = images[:, :, 2:-2, 2:-2]
        assert (inner[:, 0].diff(dim=1) > 0).all()
        assert (inner[:, 1].diff(dim=2).abs() > 0).all()


def test_crops_are_enlarged_no_more_than_asked_where_there_are_pixels():
    """The slope of the ramps is that of the picture, divided by the enlargement."""

    def slopes(crop, enlarged):
        pairs = Batches(ramps(), 1, tiny_recipe(pairs=200, crop=crop, enlarged=enlarged, recolored=0.0)).step(0)
        return 255 * torch.cat([x[:, 0, 2:-2, 5].diff(dim=1).mean(1) for x in (pairs.content, pairs.style)])

    # Short sides of 20 and 16: crops of 16 pixels have sides from 12.8 on.
    found = slopes(16, 1.25)
    assert 0.8 - 1e-3 <= found.min() < 0.82
    assert 1.23 < found.max() <= 1.25 + 1e-3
    # Pictures that are smaller are used whole.
    found = slopes(40, 1.25)
    assert ((found - 0.4).abs() < 1e-3).logical_or((found - 0.5).abs() < 1e-3).all()


def test_steps_have_crops_of_their_own_that_depend_on_nothing_else():
    batches = Batches(ramps(), 1, tiny_recipe())
    first, second, again = batches.step(3), batches.step(4), Batches(ramps(), 1, tiny_recipe()).step(3)
    assert torch.equal(first.content, again.content)
    assert torch.equal(first.style, again.style)
    assert not torch.equal(first.content, second.content)
    assert not torch.equal(first.content, Batches(ramps(), 1, tiny_recipe(seed=1)).step(3).content)


def test_contents_are_photographs_and_styles_paintings_but_for_a_share():
    """Photographs are black here, paintings white."""
    pictures = Pictures.of([np.full((20, 20, 3), value, dtype=np.uint8) for value in (0, 0, 255)])
    pairs = Batches(pictures, 2, tiny_recipe(pairs=16, exchanged=0.0)).step(0)
    assert pairs.content.max() == 0
    assert pairs.style.min() > 0.999
    pairs = Batches(pictures, 2, tiny_recipe(pairs=400, exchanged=0.25)).step(0)
    # Five standard deviations of a share of 400 are 0.11.
    assert pairs.content.mean() == pytest.approx(0.25, abs=0.11)
    assert pairs.style.mean() == pytest.approx(0.75, abs=0.11)


def test_recoloured_styles_have_their_channels_exchanged():
    color = np.zeros((20, 20, 3), dtype=np.uint8) + np.array([0, 51, 255], dtype=np.uint8)
    pairs = Batches(Pictures.of([color, color]), 1, tiny_recipe(pairs=60, recolored=1.0)).step(0)
    colors = {tuple(round(5 * value) for value in image[:, 0, 0].tolist()) for image in pairs.style}
    assert colors == {(0, 1, 5), (0, 5, 1), (1, 0, 5), (1, 5, 0), (5, 0, 1), (5, 1, 0)}
    expected = torch.tensor([0, 0.2, 1])[:, None, None].expand_as(pairs.content)
    torch.testing.assert_close(pairs.content, expected, rtol=1e-5, atol=1e-6)  # weights of bilinear sampling
