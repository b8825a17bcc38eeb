"""Files that several processes write, and what those leave that were killed."""

import multiprocessing
import os

import pytest

from matroot._files import remove_partial, whole, write_whole

SIZE = 1_000_000


def write_often(path, letter):
    for _ in range(50):
        write_whole(path, SIZE * letter)


def test_two_processes_write_one_file(tmp_path):
    """Neither fails, and the file is that of one of them."""
    path = tmp_path / "file"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_often, args=(path, letter)) for letter in (b"a", b"b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert path.read_bytes() in (SIZE * b"a", SIZE * b"b")
    assert os.listdir(tmp_path) == ["file"]


def test_writing_within_writing(tmp_path):
    path = tmp_path / "file"
    with whole(path) as outer:
        outer.write(b"outer")
        write_whole(path, b"inner")
        assert path.read_bytes() == b"inner"
    assert path.read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
def test_permissions_are_those_of_any_new_file(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_whole(path, b"")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_killed_writers_left(tmp_path):
    """Files of other names stay, though they end in the same way."""
    kept = ["last.pt", "mine.partial", "notes.0123.partial", "step-1.png"]
    for name in (*kept, "last.pt.0123456789abcdef.partial", "last.pt.partial", "step-1.png.0123.partial"):
        (tmp_path / name).touch()
    remove_partial(tmp_path, "last.pt", "*.png")
    assert sorted(os.listdir(tmp_path)) == kept
    remove_partial(tmp_path / "none", "last.pt")
