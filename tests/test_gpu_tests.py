"""The script that runs the tests on a GPU."""

import runpy
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


def test_a_part_that_goes_wrong_is_shown_and_fails(capsys):
    assert SCRIPT["_run"]("0/1", ["--no-such-option"]) != 0
    assert "unrecognized arguments: --no-such-option" in capsys.readouterr().out
    assert SCRIPT["_run"]("0/1", ["-k", "nothing_has_this_name"]) == 0
    assert "deselected" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_without_a_device_it_fails(capsys):
    assert SCRIPT["main"]([]) == 1
    assert "no CUDA device" in capsys.readouterr().err
