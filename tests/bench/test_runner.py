"""``matroot bench``: what a run writes, what it resumes, and what it says when something goes wrong."""

import json
import math
import os
import re
from pathlib import Path

import pytest
import torch
from rich.console import Console

import matroot
from matroot import _environment as environment
from matroot.bench import runner
from matroot.bench.cases import Case, Group, Outcome, Settings
from matroot.bench.compare import compare
from matroot.bench.format import read as checked

QUICK = Settings(quick=True)
FILE = "bench-cpu-float32.json"


class Fake:
    """A suite that records what is measured; one group has two cases."""

    def __init__(self, **outcomes):
        self.measured = []
        self.outcomes = outcomes

    def groups(self, settings):
        for name in ("one", "two", "three"):
            names = (name, f"{name} more") if name == "two" else (name,)
            yield Group(tuple(Case("fake", n, {"k": 1}) for n in names), self.measure)

    def measure(self, names):
        for name in names:
            contestant = name.removesuffix(" k=1")
            self.measured.append(contestant)
            found = self.outcomes.get(contestant, Outcome(errors={"root": 1e-6}))
            if isinstance(found, BaseException):
                raise found
            yield name, found

    def run(self, folder, settings=QUICK, **options):
        return runner.run(settings, folder, suites={"fake": self.groups}, **options)


ALL = ["one", "two", "two more", "three"]


def read(folder):
    return json.loads((folder / FILE).read_text())


def names(folder):
    return [case["contestant"] for case in read(folder)["cases"]]


def test_a_run_writes_what_the_format_asks_for(tmp_path):
    assert Fake().run(tmp_path / "new" / "folder") == 0
    content = checked(tmp_path / "new" / "folder" / FILE)[1]
    assert content["settings"] == {"device": "cpu", "dtype": "float32", "quick": True}
    assert content["command"] == "matroot bench --suite fake --device cpu --dtype float32 --quick"
    assert content["surroundings"]["matroot"] == matroot.__version__
    assert [case["case"] for case in content["cases"]] == ["one k=1", "two k=1", "two more k=1", "three k=1"]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [FILE]


def test_a_second_run_measures_nothing_and_fresh_everything(tmp_path):
    fake = Fake()
    fake.run(tmp_path)
    date = read(tmp_path)["surroundings"]["date"]
    assert fake.run(tmp_path) == 0
    assert fake.measured == ALL
    assert read(tmp_path)["surroundings"]["date"] == date
    assert fake.run(tmp_path, fresh=True) == 0
    assert fake.measured == ALL * 2


def test_a_case_that_is_missing_is_measured(tmp_path, capsys):
    fake = Fake()
    fake.run(tmp_path)
    content = read(tmp_path)
    del content["cases"][2]
    (tmp_path / FILE).write_text(json.dumps(content))
    fake.run(tmp_path)
    assert "3 of 4 cases are there" in capsys.readouterr().out
    assert fake.measured[4:] == ["two more"]
    assert sorted(names(tmp_path)) == sorted(ALL)


def test_ctrl_c_keeps_the_cases_that_are_finished(tmp_path, capsys):
    """Also those of the group that is running: "two" is in the file."""
    assert Fake(**{"two more": KeyboardInterrupt()}).run(tmp_path) == 130
    assert names(tmp_path) == ["one", "two"]
    said = capsys.readouterr().err
    assert "2 cases are in" in said
    assert "resumes" in said
    fake = Fake()
    assert fake.run(tmp_path) == 0
    assert fake.measured == ["two more", "three"]
    assert names(tmp_path) == ALL


def test_ctrl_c_keeps_entries_that_were_timed_often_enough(tmp_path):
    """Three rounds: "done" has had its third turn when "stopped" is called for the tenth time in its third."""
    calls = []

    def stopped():
        calls.append("stopped")
        if len(calls) == 10:
            raise KeyboardInterrupt

    def groups(settings):
        works = {"stopped": stopped, "done": list}
        entries = {name: (work, lambda: ({"root": 1e-6}, {})) for name, work in works.items()}
        cases = tuple(Case("fake", name, {}) for name in works)
        yield Group(cases, lambda names: compare({name: entries[name] for name in names}, settings))

    def run():
        return runner.run(QUICK, tmp_path, suites={"fake": groups})

    assert run() == 130
    (kept,) = read(tmp_path)["cases"]
    assert kept["case"] == "done"
    assert run() == 0
    assert read(tmp_path)["cases"][0] == kept
    assert names(tmp_path) == ["done", "stopped"]


def test_results_of_other_code_are_not_resumed(tmp_path, monkeypatch, capsys):
    """The version is the same between two commits; the digest of the source is not."""
    Fake(three=KeyboardInterrupt()).run(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    monkeypatch.setattr(environment, "source_digest", lambda: "0123456789abcdef")
    fake = Fake()
    assert fake.run(tmp_path) == 2
    assert not fake.measured
    assert (tmp_path / FILE).read_bytes() == before
    said = capsys.readouterr().err
    assert "surroundings.source" in said
    assert "the code of matroot has changed" in said
    assert "--fresh" in said
    assert fake.run(tmp_path, fresh=True) == 0
    assert fake.measured == ALL
    assert read(tmp_path)["surroundings"]["source"] == "0123456789abcdef"


def test_a_wrong_answer_fails_at_the_end_and_is_measured_again_when_resumed(tmp_path, capsys):
    fake = Fake(one=Outcome(errors={"root": 0.5, "free": 9.0}, bounds={"root": 1e-3}))
    for _ in range(2):
        assert fake.run(tmp_path) == 1
        said = capsys.readouterr().err
        assert "fake: one k=1: wrong answer: root error 5.00e-01 above 1.00e-03" in said
        assert "1 of 4 cases" in said
    assert fake.measured == [*ALL, "one"]
    assert Fake().run(tmp_path) == 0


def test_nan_is_a_wrong_answer_and_written_as_null(tmp_path):
    assert Fake(one=Outcome(errors={"root": math.nan}, bounds={"root": 1.0})).run(tmp_path) == 1
    assert read(tmp_path)["cases"][0]["errors"] == {"root": None}


def test_a_failing_group_does_not_stop_the_others(tmp_path, capsys):
    assert Fake(two=RuntimeError("no such luck")).run(tmp_path) == 1
    assert names(tmp_path) == ALL
    assert "failed: RuntimeError: no such luck" in capsys.readouterr().err
    fake = Fake()
    assert fake.run(tmp_path) == 0
    assert fake.measured == ["two", "two more"]


def damaged(change):
    def apply(content):
        change(content)
        return json.dumps(content)

    return apply


DAMAGES = {
    "cut off": (lambda content: json.dumps(content)[:-9], "cut off"),
    "not an object": (lambda content: "[]", "field format"),
    "format": (damaged(lambda c: c.update(format="matroot-bench 2")), "field format"),
    "no cases": (damaged(lambda c: c.pop("cases")), "field cases"),
    "no note": (damaged(lambda c: c["cases"][1].pop("note")), r"field cases\[1\].note"),
    "no case": (damaged(lambda c: c["cases"].insert(0, 3)), r"field cases\[0\] "),
    "text": (damaged(lambda c: c["cases"][0].update(errors={"root": "1"})), r"cases\[0\].errors.root"),
    "infinite": (damaged(lambda c: c["cases"][0].update(values={"z": [1, math.inf]})), "Infinity"),
    "time": (damaged(lambda c: c["cases"][0].update(milliseconds={"median": 1})), r"cases\[0\].milliseconds"),
    "twice": (damaged(lambda c: c["cases"].append(c["cases"][0])), "repeats"),
    "settings": (damaged(lambda c: c["settings"].update(quick=False)), "settings.quick = False"),
    "code": (damaged(lambda c: c["surroundings"].pop("source")), "surroundings.source = None"),
    "version": (damaged(lambda c: c["surroundings"].update(torch="1.0")), "surroundings.torch = '1.0'"),
    "not text": (lambda content: "\udcff", "not JSON"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_is_not_ours_is_named_and_left_alone(name, tmp_path, capsys):
    change, said = DAMAGES[name]
    fake = Fake()
    fake.run(tmp_path)
    (tmp_path / FILE).write_text(change(read(tmp_path)), errors="surrogateescape")
    before = (tmp_path / FILE).read_bytes()
    assert fake.run(tmp_path) == 2
    message = capsys.readouterr().err
    assert str(tmp_path / FILE) in message
    assert re.search(said, message)
    assert "--fresh" in message
    assert (tmp_path / FILE).read_bytes() == before
    assert fake.run(tmp_path, fresh=True) == 0
    assert checked(tmp_path / FILE)


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    fake = Fake()
    assert fake.run(tmp_path / "file") == 2
    assert str(tmp_path / "file" / FILE) in capsys.readouterr().err
    assert not fake.measured


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert Fake().run(tmp_path) == 2
    assert f"cannot write {tmp_path / FILE}: Permission denied" in capsys.readouterr().err
    tmp_path.chmod(0o700)


def test_a_full_disk_leaves_earlier_results(tmp_path, fill_disk, capsys):
    Fake(two=KeyboardInterrupt()).run(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    capsys.readouterr()
    fill_disk()
    assert Fake().run(tmp_path) == 2
    assert f"cannot write {tmp_path / FILE}: No space left on device" in capsys.readouterr().err
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_an_interrupt_while_saving_leaves_a_whole_file(tmp_path, monkeypatch):
    Fake(two=KeyboardInterrupt()).run(tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def interrupted(path, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    assert Fake().run(tmp_path) == 130
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_no_cuda(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Fake().run(tmp_path, Settings(device="cuda")) == 2
    assert "no CUDA device" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_terminal_gets_a_bar_and_a_pipe_plain_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with (tmp_path / "pipe").open("w") as pipe, (tmp_path / "terminal").open("w") as terminal:
        Fake().run(tmp_path / "1", console=Console(file=pipe, width=40))
        Fake().run(tmp_path / "2", console=Console(file=terminal, force_terminal=True))
    plain = (tmp_path / "pipe").read_text()
    assert "\x1b" not in plain
    assert "fake: 2 cases k=1, 0.0 s" in plain.splitlines()
    assert "\x1b" in (tmp_path / "terminal").read_text()


def test_no_colour(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with (tmp_path / "terminal").open("w") as terminal:
        Fake().run(tmp_path, console=Console(file=terminal, force_terminal=True))
    assert not re.search("\x1b\\[[0-9;]*3[0-9]", (tmp_path / "terminal").read_text())
