"""Two processes do not train in one folder."""

import errno
import os
import sys
from subprocess import PIPE, Popen

import pytest

from matroot import _lock as lock
from matroot._lock import locked
from matroot._terminal import CommandError
from matroot.train import run
from matroot.train.style.run import train as train_style

from .style.small import small_recipe
from .tiny import tiny_recipe

pytest.importorskip("fcntl")
HOLDER = """
import os, sys
from pathlib import Path
from matroot._lock import locked

with locked(Path(sys.argv[1])):
    worker = os.fork()  # as those that read data, which may live on for seconds
    if worker:
        print(worker, flush=True)
    sys.stdin.read()
"""


@pytest.mark.usefixtures("tiny")
def test_the_second_is_refused_until_the_first_is_gone(tmp_path):
    """Killed without a chance to unlock, and while it wrote; the folder is as it was while it lived."""
    recipe = tiny_recipe(epochs=2)
    run.train(recipe, tmp_path, quiet=True, stop_after=1)
    partial = tmp_path / "last.pt.0123456789abcdef.partial"
    partial.touch()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=PIPE, stdout=PIPE, text=True) as holder:
        worker = int(holder.stdout.readline())
        try:
            for resume in (False, True):
                with pytest.raises(CommandError, match=f"another process trains in {tmp_path}; .* another --out"):
                    run.train(recipe, tmp_path, quiet=True, resume=resume)
            with pytest.raises(CommandError, match="another process trains"):
                train_style(small_recipe(), tmp_path, device="cpu", quiet=True, resume=True)
            assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
            holder.kill()
            holder.wait()
            assert run.train(recipe, tmp_path, quiet=True, resume=True) is not None
        finally:
            os.kill(worker, 9)
    assert not partial.exists()


def test_one_after_another(tmp_path):
    folder = tmp_path / "new"
    for _ in range(2):
        with locked(folder):
            (folder / "run.json").touch()
    assert (folder / "run.json").exists()


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    for folder in (there, tmp_path / "new"):
        with pytest.raises(ArithmeticError), locked(folder):
            raise ArithmeticError
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    """Another process may be writing it."""
    monkeypatch.setattr(lock, "fcntl", None)
    partial = tmp_path / "last.pt.01234567.partial"
    partial.touch()
    with locked(tmp_path, "last.pt"):
        assert partial.exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=r"cannot write .*file"), locked(tmp_path / "file"):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_without_locks_a_run_goes_on(number, tmp_path, monkeypatch):
    """A file system that has none, and a system."""

    def lockf(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock.fcntl, "lockf", lockf)
    with locked(tmp_path):
        pass
    monkeypatch.setattr(lock, "fcntl", None)
    with locked(tmp_path):
        pass
