"""The script that runs the tests on a GPU."""

import runpy
import signal
import subprocess
from pathlib import Path

import pytest
import torch

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent / "tools/gpu_tests.py"))


def test_every_test_is_in_one_part(monkeypatch):
    found = []
    for part in range(3):
        monkeypatch.setenv("MATROOT_TESTS_PART", f"{part}/3")
        items = list(range(50))
        SCRIPT["pytest_collection_modifyitems"](items)
        assert len(items) in (16, 17)
        found += items
    assert sorted(found) == list(range(50))


def test_a_part_that_fails_is_shown(tmp_path, capsys):
    file = tmp_path / "test_two.py"
    file.write_text("def test_first():\n    pass\n\n\ndef test_second():\n    raise OSError('no second')\n")
    for selected, passed, words in (
        ("first", True, "1 passed"),
        ("second", False, "no second"),
        ("third", True, "2 d"),
    ):
        assert SCRIPT["_run"]("0/1", [str(file), "-k", selected]) == passed
        assert words in capsys.readouterr().out


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (1, 1), (-signal.SIGABRT, 1)])
def test_one_part_that_fails_is_enough(status, expected, monkeypatch, capsys):
    """Also one that a signal ended, whose status is negative."""

    def ended(command, env, **_):
        own = status if env["MATROOT_TESTS_PART"] == "1/3" else 0
        return subprocess.CompletedProcess(command, own, "the last line")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(subprocess, "run", ended)
    assert SCRIPT["main"](["--parts", "3"]) == expected
    assert capsys.readouterr().out.count("the last line") == 3


def test_there_is_a_part(capsys):
    with pytest.raises(SystemExit):
        SCRIPT["main"](["--parts", "0"])
    assert "at least 1" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_without_a_device_it_fails(capsys):
    assert SCRIPT["main"]([]) == 1
    assert "no CUDA device" in capsys.readouterr().err
