"""``last.pt`` is the one that was written, or an error that names it."""

import errno
import os
from dataclasses import replace

import pytest
import torch

from matroot._checkpoint import CheckpointError, require_same_recipe
from matroot._terminal import CommandError
from matroot.train import checkpoint
from matroot.train.checkpoint import Checkpoint


def example(number=1.0):
    return Checkpoint(
        recipe={"lr": 0.1, "milestones": [1, 2]},
        history=[{"epoch": 1, "test_accuracy": 0.5}],
        network={"weight": torch.full((100,), number)},
        average=None,
        optimizer={"state": {"weight": {"momentum_buffer": torch.ones(100)}}, "param_groups": [{"lr": 0.1}]},
        scaler=None,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "last.pt"


def test_what_is_saved_is_loaded(path):
    checkpoint.save(path, example(3.0))
    found = checkpoint.load(path)
    assert torch.equal(found.network["weight"], torch.full((100,), 3.0))
    assert (found.recipe, found.history, found.average) == (example().recipe, example().history, None)
    assert os.listdir(path.parent) == ["last.pt"]


def damage(kind, content):
    if kind == "empty":
        return b""
    if kind == "foreign":
        return b"these are no weights at all"
    if kind == "truncated":
        return content[: len(content) // 2]
    ones = content.index(torch.ones(100).numpy().tobytes())
    return content[: ones + 40] + b"\x01" + content[ones + 41 :]


@pytest.mark.parametrize("kind", ["empty", "foreign", "truncated", "one byte of a tensor"])
def test_damage_is_an_error_and_the_file_stays(kind, path):
    checkpoint.save(path, example())
    bad = damage(kind, path.read_bytes())
    path.write_bytes(bad)
    with pytest.raises(CheckpointError, match=r"last\.pt is damaged.*left as it is"):
        checkpoint.load(path)
    assert path.read_bytes() == bad


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("made-by-a-checkpoint",))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "format"),
        ({"format": "matroot-checkpoint 0"}, "format"),
        ({"format": checkpoint.FORMAT, "recipe": {}}, "lacks average, history, network"),
        (Evil(), "damaged"),
    ],
)
def test_other_files_of_torch_are_errors(content, words, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    torch.save(content, path)
    with pytest.raises(CheckpointError, match=words):
        checkpoint.load(path)
    assert os.listdir() == ["last.pt"]


def test_a_missing_file_is_named(path):
    with pytest.raises(CheckpointError, match=r"no checkpoint .*last\.pt"):
        checkpoint.load(path)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_keeps_the_earlier_file(failure, path, monkeypatch):
    checkpoint.save(path, example(1.0))

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((CheckpointError, KeyboardInterrupt)):
        checkpoint.save(path, example(2.0))
    assert os.listdir(path.parent) == ["last.pt"]
    assert checkpoint.load(path).network["weight"][0] == 1


def test_the_reason_is_that_of_the_system(path):
    """Not what torch makes of it, which tells nobody to look at the disk; a limit on sizes stands for a full one."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match=rf"cannot write .*last\.pt: .*{os.strerror(errno.EFBIG)}"):
            checkpoint.save(path, replace(example(), network={"weight": torch.ones(100_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(path.parent) == []


def test_a_folder_that_is_not_there_is_an_error(path):
    with pytest.raises(CommandError, match="cannot write"):
        checkpoint.save(path.parent / "none" / "last.pt", example())


def test_recipes_differ_by_name(path):
    stored = {"lr": 0.1, "epochs": 3, "seed": 0}
    require_same_recipe(path, stored, dict(stored))
    with pytest.raises(CheckpointError, match=r"epochs is 3 there and 4 here; lr is 0\.1 there and 0\.2 here"):
        require_same_recipe(path, stored, {"lr": 0.2, "epochs": 4, "seed": 0})
