"""Data sets whose splits are written in files."""

import numpy as np
import pytest
import torch
from scipy.io import savemat

from matroot.train.data import DataError, open_data
from matroot.train.data.readers.actions import Hmdb51, Ucf101
from matroot.train.data.readers.aircraft import Aircraft
from matroot.train.data.readers.birds import Birds
from matroot.train.data.readers.cars import Cars

from ..look_alikes import clip_folder, encoded, picture, recipe, write

CPU = torch.device("cpu")
JPEG = encoded(picture(0))


def names_of(split):
    return [path.decode().rsplit("/", 2)[1:] for path in split.paths]


@pytest.fixture
def birds(tmp_path):
    files = ["001.Crow/a.jpg", "001.Crow/b.jpg", "002.Wren/c.jpg", "002.Wren/d.jpg"]
    for file in files:
        write(tmp_path / "images" / file, JPEG)
    write(tmp_path / "images.txt", "".join(f"{number} {file}\n" for number, file in enumerate(files, 1)))
    write(tmp_path / "image_class_labels.txt", "1 1\n2 1\n3 2\n4 2\n")
    write(tmp_path / "train_test_split.txt", "1 1\n2 0\n3 0\n4 1\n")
    return tmp_path


def test_birds(birds):
    read = Birds(classes=2)(birds)
    assert names_of(read.train) == [["001.Crow", "a.jpg"], ["002.Wren", "d.jpg"]]
    assert read.train.labels.tolist() == read.test.labels.tolist() == [0, 1]
    assert names_of(read.test) == [["001.Crow", "b.jpg"], ["002.Wren", "c.jpg"]]
    assert read.stand_in is None


def test_the_official_birds_have_two_hundred_classes(birds):
    with pytest.raises(DataError, match=r"image_class_labels\.txt: 2 classes, expected 200"):
        open_data(recipe("cub200"), birds, CPU)


@pytest.mark.parametrize(("file", "content", "message"), [
    ("train_test_split.txt", "1 1\n2 0\n3 0\n", r"train_test_split\.txt: image 4 is not both here and in images\.txt"),
    ("image_class_labels.txt", "1 1\n2\n3 2\n4 2\n", r"image_class_labels\.txt, line 2: '2', expected number"),
    ("images.txt", "", r"images\.txt: is empty, expected number and file"),
    ("train_test_split.txt", "1 1\n2 0\n3 x\n4 1\n", r"train_test_split\.txt: image 3 has x, expected 0 or 1"),
])  # fmt: skip
def test_damaged_annotations(birds, file, content, message):
    write(birds / file, content)
    with pytest.raises(DataError, match=message):
        Birds(classes=2)(birds)


def test_missing_images_are_counted_and_named(birds):
    (birds / "images/001.Crow/a.jpg").unlink()
    with pytest.raises(DataError, match=r"images\.txt: 1 of 2 files are missing, first .*001\.Crow/a\.jpg"):
        Birds(classes=2)(birds)


@pytest.fixture
def aircraft(tmp_path):
    data = tmp_path / "fgvc-aircraft-2013b/data"
    for number in ("11", "12", "13"):
        write(data / f"images/{number}.jpg", JPEG)
    write(data / "variants.txt", "707-320\nDHC-8-100 b\n")
    write(data / "images_variant_trainval.txt", "11 DHC-8-100 b\n13 707-320\n")
    write(data / "images_variant_test.txt", "12 707-320\n")
    return tmp_path


def test_aircraft(aircraft):
    read = Aircraft(classes=2)(aircraft / "fgvc-aircraft-2013b")
    assert names_of(read.train) == [["images", "11.jpg"], ["images", "13.jpg"]]
    assert read.train.labels.tolist() == [1, 0]
    assert read.test.labels.tolist() == [0]
    # The published recipe: 512 pixels, of which 448 are cut.
    assert round(448 * read.fine_grained.ratio) == 512


def test_an_unknown_variant(aircraft):
    write(aircraft / "fgvc-aircraft-2013b/data/images_variant_test.txt", "12 747\n")
    with pytest.raises(DataError, match=r"images_variant_test\.txt: '747' is not in variants\.txt"):
        Aircraft(classes=2)(aircraft / "fgvc-aircraft-2013b")
    with pytest.raises(DataError, match=r"variants\.txt: 2 classes, expected 100"):
        open_data(recipe("aircraft"), aircraft, CPU)


def annotations(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.array(rows, dtype=[("class", object), ("fname", object)])
    savemat(path, {"annotations": table.reshape(1, -1)})


@pytest.fixture
def cars(tmp_path):
    for file in ("cars_train/1.jpg", "cars_train/2.jpg", "cars_test/1.jpg"):
        write(tmp_path / file, JPEG)
    annotations(tmp_path / "devkit/cars_train_annos.mat", [(2, "1.jpg"), (1, "2.jpg")])
    annotations(tmp_path / "cars_test_annos_withlabels.mat", [(2, "1.jpg")])
    return tmp_path


def test_cars(cars):
    read = Cars(classes=2)(cars)
    assert names_of(read.train) == [["cars_train", "1.jpg"], ["cars_train", "2.jpg"]]
    assert read.train.labels.tolist() == [1, 0]
    assert read.test.labels.tolist() == [1]
    assert read.fine_grained.square


def test_damaged_cars(cars):
    with pytest.raises(DataError, match=r"cars_train_annos\.mat: 2 classes, expected 196"):
        open_data(recipe("cars"), cars, CPU)
    (cars / "cars_test/1.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of 1 files are missing, first .*cars_test/1\.jpg"):
        Cars(classes=2)(cars)
    write(cars / "devkit/cars_train_annos.mat", b"MATLAB")
    with pytest.raises(DataError, match=r"cars_train_annos\.mat: expected annotations with fname and class"):
        Cars(classes=2)(cars)


@pytest.mark.parametrize("base", ["UCF-101", "frames", "."])
def test_ucf101(tmp_path, base):
    write(tmp_path / "ucfTrainTestlist/classInd.txt", "1 Bowling\n2 Archery\n")
    write(tmp_path / "ucfTrainTestlist/trainlist01.txt", "Archery/v_a.avi 2\nBowling/v_b.avi 1\n")
    write(tmp_path / "ucfTrainTestlist/testlist01.txt", "Archery/v_c.avi\n")
    clip_folder(tmp_path / base / "Archery/v_a", 3)
    write(tmp_path / base / "Bowling/v_b.avi", b"")
    write(tmp_path / base / "Archery/v_c.avi", b"")
    read = Ucf101("ucfTrainTestlist", classes=2)(tmp_path)
    assert names_of(read.train) == [["Archery", "v_a"], ["Bowling", "v_b.avi"]]
    assert read.train.labels.tolist() == [1, 0]
    assert names_of(read.test) == [["Archery", "v_c.avi"]]
    assert read.clips
    (tmp_path / base / "Archery/v_c.avi").unlink()
    with pytest.raises(DataError, match=r"testlist01\.txt: 1 of 1 clips are missing, first .*v_c\.avi \(or a folder"):
        Ucf101("ucfTrainTestlist", classes=2)(tmp_path)
    write(tmp_path / "ucfTrainTestlist/testlist01.txt", "Diving/v_c.avi\n")
    with pytest.raises(DataError, match=r"testlist01\.txt: 'Diving' is not in classInd\.txt"):
        Ucf101("ucfTrainTestlist", classes=2)(tmp_path)


def test_hmdb51(tmp_path):
    write(tmp_path / "splits/wave_test_split1.txt", "one.avi 1 \ntwo.avi 0 \n")
    write(tmp_path / "splits/run_test_split1.txt", "three.avi 2 \n")
    write(tmp_path / "splits/run_test_split2.txt", "three.avi 1 \n")
    for file in ("wave/one.avi", "wave/two.avi", "run/three.avi"):
        write(tmp_path / "videos" / file, b"")
    read = Hmdb51("splits", classes=2)(tmp_path)
    assert names_of(read.train) == [["wave", "one.avi"]]
    assert read.train.labels.tolist() == [1]
    assert names_of(read.test) == [["run", "three.avi"]]
    with pytest.raises(DataError, match="splits: 2 classes, expected 51"):
        open_data(recipe("hmdb51"), tmp_path, CPU)
    write(tmp_path / "splits/run_test_split1.txt", "three.avi 4 \n")
    with pytest.raises(DataError, match=r"run_test_split1\.txt: three\.avi 4, expected 0, 1 or 2"):
        Hmdb51("splits", classes=2)(tmp_path)
    (tmp_path / "videos").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"expected a folder for every class \(run, \.\.\.\) in one of"):
        Hmdb51("splits", classes=2)(tmp_path)
