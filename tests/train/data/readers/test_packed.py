"""Class folders and clips inside zip files."""

import pytest
import torch

from matroot.train.data import DataError, open_data
from matroot.train.data.readers.fight import FILE, read_fight
from matroot.train.data.readers.packed import PackedFolders

from ..look_alikes import class_members, encoded, fight_members, picture, recipe, write_zip

CPU = torch.device("cpu")


def test_every_image_is_read_with_its_class(tmp_path):
    members = class_members("val", classes=3, images=2, side=24)
    members["val/class01/0.jpg"] = encoded(picture(1, 40, 30).convert("L"))
    members["classes.json"] = b"{}"
    write_zip(tmp_path / "small.zip", members)
    read = PackedFolders("small.zip", "val", side=24, classes=3, stand_in="Small.")(tmp_path)
    assert read.train.pixels.shape == (6, 24, 24, 3)
    assert read.train.labels.tolist() == read.test.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert torch.equal(read.train.pixels[0], read.train.pixels[1])
    assert torch.equal(read.train.pixels[2], read.test.pixels[3])
    # Grey images have three equal channels.
    assert torch.equal(read.test.pixels[2, ..., 0], read.test.pixels[2, ..., 1])
    assert read.stand_in == "Small."


@pytest.mark.parametrize(("name", "file", "test", "classes"), [
    ("tinyimagenet20", "tinyimagenet20.zip", "val", 20),
    ("cub40", "cub40_s160.zip", "test", 40),
])  # fmt: skip
def test_packaged_sets(tmp_path, name, file, test, classes):
    write_zip(tmp_path / file, class_members(test, classes, images=1, side=24))
    data = open_data(recipe(name, augment="finegrained"), tmp_path, CPU)
    images, _ = next(data.train.epoch(1))
    assert images.shape == (4, 3, 16, 16)
    assert data.num_classes == classes
    assert "stand in for" in data.stand_in


def test_a_class_without_images(tmp_path):
    members = class_members("val", classes=2, images=1, side=24)
    del members["val/class01/0.jpg"]
    write_zip(tmp_path / "small.zip", members)
    with pytest.raises(DataError, match=r"small\.zip: val/class01 has no images"):
        PackedFolders("small.zip", "val", side=24, classes=2, stand_in="")(tmp_path)


def test_another_number_of_classes(tmp_path):
    write_zip(tmp_path / "small.zip", class_members("val", classes=2, images=1, side=24))
    with pytest.raises(DataError, match=r"small\.zip: 2 classes, expected 3"):
        PackedFolders("small.zip", "val", side=24, classes=3, stand_in="")(tmp_path)


def test_clips_are_split_by_class(tmp_path):
    write_zip(tmp_path / FILE, fight_members(clips=12))
    read = read_fight(tmp_path)
    assert read.train.labels.bincount().tolist() == [4, 4]
    assert read.test.labels.bincount().tolist() == [2, 2]
    assert read.test.pixels.shape == (4, 8, 112, 112, 3)
    assert read.test.pixels[0].float().mean(dim=(1, 2, 3)).tolist() == [30.0 * frame for frame in range(8)]


def test_fewer_frames_are_the_middle_ones(tmp_path):
    write_zip(tmp_path / FILE, fight_members())
    data = open_data(recipe("fight", frames=4, augment="corner-crop-flip"), tmp_path, CPU)
    clips, _ = next(data.test.epoch(1))
    assert clips.shape[1:] == (4, 3, 16, 16)
    levels = (clips[0, :, 0].mean(dim=(1, 2)) * 0.229 + 0.485) * 255
    torch.testing.assert_close(levels, torch.tensor([30.0, 90.0, 150.0, 210.0]), rtol=0, atol=0.1)
    with pytest.raises(DataError, match="clips of fight have 8 frames, not 16"):
        open_data(recipe("fight", frames=16), tmp_path, CPU)


@pytest.mark.parametrize(("changes", "message"), [
    ({"labels.csv": b"file,label\n"}, "needs the columns file and label"),
    ({"labels.csv": b"name,kind\na,b\n"}, "needs the columns file and label"),
    ({"labels.csv": b"file,label\nclip0.jpg,fight\n"}, "has the labels fight, expected two"),
    ({"labels.csv": b"file,label\nother.jpg,a\nclip0.jpg,b\n"}, r"clips/other\.jpg is missing"),
    ({"clips/clip1.jpg": encoded(picture(0, 224, 112))}, r"clips/clip1\.jpg has 2 frames, expected 8"),
])  # fmt: skip
def test_damaged_clips(tmp_path, changes, message):
    write_zip(tmp_path / FILE, fight_members() | changes)
    with pytest.raises(DataError, match=message):
        read_fight(tmp_path)
