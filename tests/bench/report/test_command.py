"""``matroot report`` as a command: exit status, messages, and the file it writes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from matroot._cli import main
from matroot.bench.report import write

from .example_results import document, save

SMALL = document(suites=("schemes",))


@pytest.fixture
def file(tmp_path):
    return save(tmp_path / "bench-cpu-float32.json", SMALL)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "page.html"


def report(*files, out):
    return main.main(["report", *map(str, files), "--out", str(out)])


def is_whole(path):
    html = path.read_text(encoding="utf-8")
    return html.startswith("<!doctype html>") and html.endswith("</html>\n")


def test_the_path_of_the_page_is_printed(file, out, capsys):
    assert report(file, out=out) == 0
    assert capsys.readouterr() == (f"{out}\n", "")
    assert is_whole(out)


def test_unreadable_files_are_named_and_the_others_reported(tmp_path, file, out, capsys):
    broken, missing, folder = tmp_path / "broken.json", tmp_path / "missing.json", tmp_path / "folder.json"
    broken.write_text("{")
    folder.mkdir()
    assert report(broken, file, missing, folder, out=out) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert f"{broken}: not JSON" in errors[0]
    assert f"{missing}: No such file or directory" in errors[1]
    assert f"{folder}: Is a directory" in errors[2]
    assert "Example Processor" in out.read_text(encoding="utf-8")


def test_no_readable_file_makes_no_page(tmp_path, out, capsys):
    assert report(tmp_path / "missing.json", out=out) == 2
    assert not out.exists()
    assert "no file to report" in capsys.readouterr().err


def test_unwritable_output_is_named(tmp_path, file, capsys):
    for out in (tmp_path, tmp_path / "missing" / "page.html"):
        assert report(file, out=out) == 2
        assert str(out) in capsys.readouterr().err


def test_a_full_disk_leaves_the_earlier_page(tmp_path, file, out, fill_disk, capsys):
    out.write_text("earlier")
    fill_disk()
    assert report(file, out=out) == 2
    assert f"{out}: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "earlier"
    assert {path.name for path in tmp_path.iterdir()} == {file.name, out.name}


def test_figures_are_written_as_files_for_a_paper(tmp_path, file, out, capsys):
    folder = tmp_path / "new" / "figures"
    assert write([file], out, folder) == 0
    assert is_whole(out)
    names = {path.name for path in folder.iterdir()}
    assert names == {f"schemes-1-1.{kind}" for kind in ("svg", "pdf", "png")}
    assert capsys.readouterr().out == f"{out}\n{folder}: 3 files\n"


def test_figures_that_cannot_be_written_are_named(file, out, capsys):
    assert write([file], out, file) == 2
    assert f"{file}: File exists" in capsys.readouterr().err


def test_a_result_file_is_not_overwritten(file, capsys):
    before = file.read_bytes()
    assert report(file, out=file) == 2
    assert file.read_bytes() == before
    assert str(file) in capsys.readouterr().err


def test_only_regular_files_are_replaced(file, out, capsys):
    """A device or a pipe, such as /dev/null, stays what it is."""
    os.mkfifo(out)
    assert report(file, out=out) == 2
    assert out.is_fifo()
    assert f"{out}: not a regular file" in capsys.readouterr().err


def test_a_link_stays_a_link(tmp_path, file, out):
    target = tmp_path / "target.html"
    out.symlink_to(target)
    assert report(file, out=out) == 0
    assert out.is_symlink()
    assert is_whole(target)


@pytest.mark.parametrize(
    ("encoding", "name", "printed"),
    [("ascii", "é.html", rb"\xe9.html"), ("utf-8", "\udcff.html", rb"\udcff.html")],
)
def test_the_path_is_printed_in_any_encoding(tmp_path, file, monkeypatch, encoding, name, printed):
    """PYTHONIOENCODING=ascii, and a file name that is not UTF-8."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert report(file, out=tmp_path / name) == 0
    stdout.flush()
    assert stdout.buffer.getvalue().endswith(printed + b"\n")
    assert is_whole(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_on_a_full_disk(file, out):
    """In its own process: the interpreter flushes standard output again when it ends."""
    command = [sys.executable, "-m", "matroot", "report", str(file), "--out", str(out)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert is_whole(out)


def test_ctrl_c(monkeypatch, file, out):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("matroot.bench.report.write", interrupted)
    assert report(file, out=out) == 130
