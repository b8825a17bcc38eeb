"""Where data is looked for."""

from pathlib import Path

import pytest
import torch

from matroot.train.data import DataError, list_datasets, open_data

from .look_alikes import cifar10_zips, recipe

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No data of this machine."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.delenv("MATROOT_DATA", raising=False)


def source(root=None):
    return open_data(recipe("cifar10"), root, CPU).source


def test_the_order_of_places(tmp_path, monkeypatch):
    for name in ("given", "named", "here/data", "torch/data"):
        (tmp_path / name).mkdir(parents=True)
    given, named = tmp_path / "given", tmp_path / "named"
    monkeypatch.setenv("MATROOT_DATA", str(named))
    for folder, root in (
        (tmp_path / "torch/data", None),
        (Path("data"), None),
        (named, None),
        (given, given),
    ):
        cifar10_zips(folder)
        assert source(root) == str(folder)


def test_a_folder_that_is_given_is_the_only_place(tmp_path, monkeypatch):
    """Data from elsewhere might be other data."""
    given, named = tmp_path / "given", tmp_path / "named"
    given.mkdir()
    cifar10_zips(named)
    monkeypatch.setenv("MATROOT_DATA", str(named))
    with pytest.raises(DataError, match=rf"Looked in\n  {given} \(--data\): nothing of it\nUnpack"):
        source(given)


def test_the_path_may_be_a_file_of_the_data_set(tmp_path):
    cifar10_zips(tmp_path)
    assert source(tmp_path / "cifar10_webp_lossless_A.zip") == str(tmp_path)


def test_a_file_of_another_data_set_is_none(tmp_path):
    """Whatever lies beside it."""
    cifar10_zips(tmp_path)
    other = tmp_path / "cub40_s160.zip"
    other.touch()
    with pytest.raises(DataError, match=r"cub40_s160\.zip \(--data\): nothing of it"):
        source(other)


def test_not_found_says_what_was_expected_where(tmp_path, monkeypatch):
    monkeypatch.setenv("MATROOT_DATA", str(tmp_path / "named"))
    with pytest.raises(DataError) as failure:
        source()
    message = str(failure.value)
    for place in (
        f"{tmp_path / 'named'} (MATROOT_DATA)",
        "data (",
        str(tmp_path / "torch/data"),
    ):
        assert place in message
    for expected in ("cifar-10-batches-py", "cifar10_webp_lossless_B.zip", "cs.toronto.edu", "digits needs no files"):
        assert expected in message


def test_half_a_data_set_is_said_to_be_one(tmp_path):
    cifar10_zips(tmp_path)
    (tmp_path / "cifar10_webp_lossless_B.zip").unlink()
    with pytest.raises(DataError, match=rf"cifar10_webp_lossless_B\.zip is missing in {tmp_path}"):
        source(tmp_path)


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="nowhere: no such folder"):
        source(tmp_path / "nowhere")


@pytest.mark.parametrize("name", [name for name in list_datasets() if name != "digits"])
def test_every_data_set_that_is_missing_says_so(name):
    with pytest.raises(DataError, match=f"^{name} was not found"):
        open_data(recipe(name), None, CPU)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        DataError, match=r"unknown data set cifar-10, did you mean cifar10\? There are digits, cifar10,"
    ):
        open_data(recipe("cifar-10"), None, CPU)
    with pytest.raises(DataError, match=r"unknown data set q\. There are digits"):
        open_data(recipe("q"), None, CPU)
