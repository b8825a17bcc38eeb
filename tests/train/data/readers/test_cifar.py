"""CIFAR in both of its forms."""

import numpy as np
import pytest
import torch

from matroot.train.data import DataError, open_data
from matroot.train.data.readers.cifar import CifarMosaics

from ..look_alikes import cifar10_batches, cifar10_zips, cifar_members, numpy_file, recipe, write_zip

CPU = torch.device("cpu")


def open_cifar(folder, name="cifar10", **fields):
    return open_data(recipe(name, image_size=32, **fields), folder, CPU)


def train_pixels(data):
    """Of a recipe without augmentation, in the order of the labels."""
    from matroot.train.data.readers.cifar import MEAN, STD

    images, labels = zip(*data.train.epoch(1), strict=True)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return ((torch.cat(images) * std + mean) * 255).round().byte().movedim(1, -1), torch.cat(labels)


def test_mosaics_are_read_without_loss(tmp_path):
    pixels, labels = cifar10_zips(tmp_path)
    data = open_cifar(tmp_path, augment="none", batch_size=12)
    read, read_labels = train_pixels(data)
    expected = {(image.tobytes(), label) for image, label in zip(pixels, labels.tolist(), strict=True)}
    assert expected == {
        (image.numpy().tobytes(), label) for image, label in zip(read, read_labels.tolist(), strict=True)
    }
    assert len(data.test) == 1
    assert data.num_classes == 10
    assert data.stand_in is None


def test_stored_steps_are_multiplied_and_said(tmp_path):
    members, pixels, labels = cifar_members(classes=100, step=5)
    write_zip(tmp_path / "cifar100_webp_near5.zip", members)
    read = CifarMosaics(("cifar100_webp_near5.zip",), 100)(tmp_path)
    assert np.array_equal(read.train.pixels.numpy(), np.minimum(255, pixels.astype(int) * 5))
    assert read.train.labels.tolist() == labels.tolist()
    assert open_cifar(tmp_path, "cifar100").stand_in == "Pixels of CIFAR-100 are rounded to multiples of 5."


def test_mosaics_are_ordered_by_number(tmp_path):
    """train_10 comes after train_9."""
    members, pixels, _ = cifar_members()
    members["train_10.webp"] = members.pop("train_1.webp")
    members["train_9.webp"] = members.pop("train_0.webp")
    read = CifarMosaics(("all.zip",), 10)(write_zip(tmp_path / "all.zip", members).parent)
    assert np.array_equal(read.train.pixels.numpy(), pixels)


def damaged(tmp_path, **changes):
    members, _, _ = cifar_members()
    for name, data in changes.items():
        name = name.replace("__", ".")
        if data is None:
            del members[name]
        else:
            members[name] = data
    write_zip(tmp_path / "all.zip", members)
    return CifarMosaics(("all.zip",), 10)(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_1__webp": None}, r"train_labels\.npy has 12 labels, but there is train_0\.webp with 6 images"),
        ({"test_0__webp": None}, r"test_labels\.npy has 6 labels, but there is no mosaic with 0 images"),
        ({"test_labels__npy": None}, r"test_labels\.npy is missing"),
        ({"train_labels__npy": numpy_file(np.zeros(11, np.uint8))}, r"has 11 labels, but there is .* with 12 images"),
        ({"train_labels__npy": numpy_file(np.full(12, 10))}, r"labels 10 to 10, expected 0 to 9"),
        ({"train_labels__npy": numpy_file(np.zeros((12, 1), int))}, r"expected integers in one dimension"),
        ({"train_labels__npy": b"\x93NUMPY"}, r"train_labels\.npy is not a NumPy file"),
        ({"train_0__webp": b"RIFF"}, r"train_0\.webp: cannot be read as an image"),
        ({"scale__json": b"{}"}, r"scale\.json is unreadable"),
    ],
)
def test_damage_is_named(tmp_path, changes, message):
    with pytest.raises(DataError, match=message) as failure:
        damaged(tmp_path, **changes)
    assert str(tmp_path / "all.zip") in str(failure.value)


def test_a_mosaic_of_another_size(tmp_path):
    from ..look_alikes import encoded, picture

    with pytest.raises(DataError, match=r"test_0\.webp is 100x64 pixels, expected a mosaic of 32x32"):
        damaged(tmp_path, test_0__webp=encoded(picture(0, 100, 64), "WEBP"))


def test_a_truncated_zip(tmp_path):
    cifar10_zips(tmp_path)
    part = tmp_path / "cifar10_webp_lossless_B.zip"
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"lossless_B\.zip: not a whole zip file"):
        open_cifar(tmp_path)


def test_a_flipped_bit_in_a_zip(tmp_path):
    cifar10_zips(tmp_path)
    part = tmp_path / "cifar10_webp_lossless_B.zip"
    content = bytearray(part.read_bytes())
    content[500] ^= 1
    part.write_bytes(content)
    with pytest.raises(DataError, match=r"train_1\.webp is corrupt: Bad CRC-32"):
        open_cifar(tmp_path)


@pytest.mark.parametrize("inside", [False, True])
def test_the_folder_of_torchvision(tmp_path, monkeypatch, inside):
    pixels = cifar10_batches(tmp_path, monkeypatch)
    data = open_cifar(tmp_path / "cifar-10-batches-py" if inside else tmp_path, augment="none", batch_size=10)
    read, labels = train_pixels(data)
    assert {image.tobytes() for image in pixels} == {image.numpy().tobytes() for image in read}
    assert sorted(labels.tolist()) == [1] * 5 + [7] * 5
    assert data.stand_in is None


def test_a_checksum_that_differs_names_the_file(tmp_path, monkeypatch):
    cifar10_batches(tmp_path, monkeypatch)
    batch = tmp_path / "cifar-10-batches-py/data_batch_3"
    batch.write_bytes(batch.read_bytes() + b" ")
    with pytest.raises(DataError, match=r"cifar-10-batches-py: data_batch_3 is not the published file \(md5 differs\)"):
        open_cifar(tmp_path)
