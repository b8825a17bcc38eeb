"""Photos and paintings: where they are found, and which of them a step sees."""

import numpy as np
import pytest
import torch
from PIL import Image

from matroot.train.data import DataError
from matroot.train.style.pictures import as_network_input, as_unit_range, batch, open_pictures

from ..data.look_alikes import encoded, picture, write, write_zip
from .small import cyclegan

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def nowhere_else(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("MATROOT_DATA", raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path_factory.mktemp("cache")))


def counts(pictures):
    return [len(split) for domain in (pictures.photos, pictures.paintings) for split in (domain.train, domain.test)]


def members(name, count):
    return {f"{name}/{number:03}.jpg": encoded(picture(number, 30, 40)) for number in range(count)}


def test_folders_of_cyclegan(tmp_path):
    found = open_pictures("folder", 24, cyclegan(tmp_path), CPU)
    assert counts(found) == [3, 2, 5, 2]
    assert found.source == str(tmp_path)
    photo = found.photos.train[1]
    assert (photo.shape, photo.dtype) == ((3, 24, 24), torch.uint8)
    # the middle square of the second photo
    expected = picture(11, 40, 36).crop((2, 0, 38, 36)).resize((24, 24))
    assert np.abs(photo.movedim(0, -1).numpy().astype(int) - np.asarray(expected)).mean() < 2


def test_named_sets_stand_side_by_side(tmp_path):
    cyclegan(tmp_path / "vangogh2photo", tests=False)
    assert counts(open_pictures("vangogh2photo", 8, tmp_path, CPU)) == [2, 1, 4, 1]


def test_folders_of_ones_own(tmp_path):
    for name, count in (("paintings", 21), ("photos", 2)):
        for number in range(count):
            write(tmp_path / name / f"{number}.JPG", encoded(picture(number)))
    write(tmp_path / "photos/readme.txt", "no picture")
    assert counts(open_pictures("folder", 8, tmp_path, CPU)) == [1, 1, 19, 2]


def test_photos_are_upright(tmp_path):
    """As their EXIF data say, and as they are stored where those are damaged."""
    stored, turned = picture(1, 40, 36), Image.Exif()
    turned[274] = 6
    for name, exif in (("0", turned.tobytes()), ("1", b"Exif\0\0II*\0\xff"), ("2", b"Exif\0\0MM\0\0")):
        write(tmp_path / f"photos/{name}.png", encoded(stored, "PNG", exif=exif))
    for number in range(2):
        write(tmp_path / f"paintings/{number}.png", encoded(picture(number), "PNG"))
    found = open_pictures("folder", 36, tmp_path, CPU).photos
    expected = torch.from_numpy(np.array(stored.crop((2, 0, 38, 36)))).movedim(-1, 0)
    assert torch.equal(found.train[0], expected.rot90(-1, (1, 2)))
    assert torch.equal(found.train[1], expected)
    assert torch.equal(found.test[0], expected)


def test_zip_files(tmp_path):
    write_zip(tmp_path / "monet2photo_256.zip", members("monet", 12) | members("photo", 30))
    write_zip(tmp_path / "ukiyoe.zip", members("ukiyoe", 11))
    assert counts(open_pictures("monet2photo", 8, tmp_path, CPU)) == [27, 3, 11, 1]
    found = open_pictures("ukiyoe2photo", 8, tmp_path, CPU)
    assert counts(found) == [27, 3, 10, 1]
    # one in ten, and none of it in training
    everything = open_pictures("folder", 8, _unpacked(tmp_path / "all", 11), CPU)
    assert torch.equal(everything.paintings.test[0], found.paintings.test[0])
    assert not (found.paintings.train == found.paintings.test[0]).flatten(1).all(1).any()


def _unpacked(folder, count):
    for name in ("paintings", "photos"):
        for file, data in members(name, count).items():
            write(folder / file, data)
    return folder


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(DataError, match=r"unknown pictures monet\. There are monet2photo, ukiyoe2photo"):
        open_pictures("monet", 8, tmp_path, CPU)
    with pytest.raises(DataError, match=r"(?s)monet2photo was not found.*trainA, trainB.*monet2photo_256.zip") as error:
        open_pictures("monet2photo", 8, tmp_path, CPU)
    assert "digits" not in str(error.value)
    (tmp_path / "trainA").mkdir()
    (tmp_path / "trainB").mkdir()
    with pytest.raises(DataError, match=r"trainA: expected pictures \(.jpg"):
        open_pictures("folder", 8, tmp_path, CPU)
    write(tmp_path / "trainA/a.jpg", b"no picture")
    write(tmp_path / "trainA/b.jpg", encoded(picture(0)))
    write(tmp_path / "trainB/a.jpg", encoded(picture(0)))
    with pytest.raises(DataError, match="trainB: expected two pictures at least, found 1"):
        open_pictures("folder", 8, tmp_path, CPU)
    write(tmp_path / "trainB/b.jpg", encoded(picture(0)))
    with pytest.raises(DataError, match=r"trainA/a.jpg: cannot be read as an image"):
        open_pictures("folder", 8, tmp_path, CPU)


NUMBERED = torch.arange(7, dtype=torch.uint8).view(7, 1, 1, 1).expand(7, 3, 2, 2)


def seen(steps, seed=0, which=0, size=3):
    """Numbers of the pictures of some steps."""
    found = [batch(NUMBERED, seed, which, step, size)[:, 0, 0, 0] for step in range(steps)]
    return ((torch.cat(found) + 1) * 127.5).round().int().tolist()


def test_every_pass_sees_every_picture_once_in_an_order_of_its_own():
    found = seen(7)
    passes = [found[k : k + 7] for k in (0, 7, 14)]
    assert all(sorted(one) == list(range(7)) for one in passes)
    assert passes[0] != passes[1] != passes[2]
    assert seen(7) == found
    assert found != seen(7, seed=1)
    assert found != seen(7, which=1)


def test_a_batch_may_be_larger_than_the_set():
    found = seen(1, size=14)
    assert sorted(found[:7]) == sorted(found[7:]) == list(range(7))


def test_half_of_the_pictures_are_mirrored():
    stripe = torch.zeros(1, 3, 2, 4, dtype=torch.uint8)
    stripe[..., 0] = 255
    found = torch.cat([batch(stripe, 0, 0, step, 4) for step in range(100)])
    mirrored = found[:, 0, 0, -1] == 1
    assert torch.equal(mirrored, found[:, 0, 0, 0] == -1)
    assert 160 < mirrored.sum() < 240  # four standard deviations of 400 fair coins


def test_pixels_come_back():
    pixels = torch.arange(256, dtype=torch.uint8)
    images = as_network_input(pixels)
    assert (images.min(), images.max()) == (-1, 1)
    assert torch.equal(as_unit_range(images).mul(255).round().byte(), pixels)
