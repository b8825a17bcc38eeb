"""The script that makes the comparisons of docs/results.md."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from matroot._cli import main
from matroot.train.compare import session
from matroot.train.compare.plan import shared_fields
from matroot.train.compare.results import Comparison, RunResult, read, write
from matroot.train.compare.run_state import Curve

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "tools/comparisons.py"))
COMPARISONS = SCRIPT["COMPARISONS"]
COMMITTED = sorted((ROOT / "benchmarks/results").glob("compare-*.json"))


@pytest.fixture
def requests(monkeypatch):
    """What comparisons are asked for; none is run."""
    found = []
    monkeypatch.setattr(session, "compare", lambda request, console: found.append(request) or 0)
    return found


@pytest.fixture
def calls(monkeypatch):
    """Commands that would run; ``statuses`` are theirs, 0 where there is none left."""
    made, statuses = [], []

    def run(command, env):
        assert env["OMP_NUM_THREADS"]
        made.append(command[1:])
        return subprocess.CompletedProcess(command, statuses.pop(0) if statuses else 0)

    monkeypatch.setattr(subprocess, "run", run)
    return type("Calls", (), {"made": made, "statuses": statuses})


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_is_a_call(name, requests, tmp_path):
    comparison = COMPARISONS[name]
    assert main.main(["compare", *comparison.arguments(), "--out", str(tmp_path)]) == 0
    (request,) = requests
    recipe = shared_fields(request.recipe)
    assert comparison.file_name == Comparison("", {}, request.name, request.variant, recipe).file_name
    assert request.presets[:2] == ("baseline", "default")
    assert len(request.seeds) >= 2


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_results_are_gone_on_with(path, requests):
    """One comparison has that file, with the same recipe and at least its presets."""
    (comparison,) = [one for one in COMPARISONS.values() if one.file_name == path.name]
    assert main.main(["compare", *comparison.arguments()]) == 0
    found = read(path)
    session.require_same(path, found.recipe, shared_fields(requests[0].recipe))
    assert {*found.presets} <= {*requests[0].presets}


def test_files_have_different_names():
    assert len({comparison.file_name for comparison in COMPARISONS.values()}) == len(COMPARISONS)


def test_all_are_made_in_turn(calls, tmp_path, capsys):
    assert SCRIPT["main"](["--out", str(tmp_path), "--jobs", "3"]) == 0
    assert [Path(command[command.index("--out") + 1]).name for command in calls.made] == [*COMPARISONS]
    assert all(command[:3] == ["-m", "matroot", "compare"] for command in calls.made)
    assert all(command[-2:] == ["--jobs", "3"] for command in calls.made)
    for path in COMMITTED:
        (copy,) = tmp_path.glob(f"*/{path.name}")
        assert copy.read_bytes() == path.read_bytes()
    assert "birds: 10 of 10 runs" in capsys.readouterr().out


def test_those_that_are_named_with_other_presets(calls, tmp_path):
    names = ["birds", "cifar100", "--presets", "ns", "default", "--seeds", "2", "--time-limit", "500"]
    calls.statuses.append(1)
    assert SCRIPT["main"]([*names, "--out", str(tmp_path)]) == 1
    first, second = calls.made
    assert first[3:11] == ["gcp", "--variant", "cub40", "--presets", "ns", "default", "--seeds", "2"]
    assert second[-2] == "--time-limit"
    assert 400 < int(second[-1]) <= 500


def test_what_there_is_no_time_for_is_not_begun(calls, tmp_path, capsys):
    assert SCRIPT["main"](["birds", "--out", str(tmp_path), "--time-limit", "5"]) == 1
    assert not calls.made
    assert "birds: no time left" in capsys.readouterr().out


def test_steps_are_timed_apart_from_runs(calls, tmp_path):
    for timing in ("none", "only"):
        SCRIPT["main"](["birds", "--out", str(tmp_path), "--time-limit", "500", "--timing", timing])
    runs, steps = calls.made
    assert runs[-1] == "--no-timing"
    assert "--no-timing" not in steps
    assert steps[-2:] == ["--time-limit", "1"]


def test_results_are_copied(calls, tmp_path):
    folder = tmp_path / "out/clips"
    folder.mkdir(parents=True)
    recipe = {"model": "tea50_tcp", "dataset": "fight", "epochs": 3}
    runs = (RunResult("ns", 0, None, "it failed", Curve(), None),)
    write(folder / "compare-video-fight-fight.json", Comparison("", {}, "video", "fight", recipe, None, runs))
    assert SCRIPT["main"](["clips", "--out", str(tmp_path / "out"), "--results", str(tmp_path / "results")]) == 0
    assert read(tmp_path / "results/compare-video-fight-fight.json").runs == runs


def test_unknown_names_are_answered_with_all(capsys):
    with pytest.raises(SystemExit):
        SCRIPT["main"](["cifar"])
    assert "unknown comparison cifar; there are cifar100, pooling-cifar100" in capsys.readouterr().err


def test_the_page_names_what_is_not_made():
    """Presets of comparisons that have begun; others by their data set, and seeds."""
    missing = set()
    for comparison in COMPARISONS.values():
        path = ROOT / "benchmarks/results" / comparison.file_name
        if path.exists():
            made = {run.preset for run in read(path).runs if run.result}
            missing |= {*comparison.presets.split()} - made
    text = (ROOT / "docs/results.md").read_text(encoding="utf-8").partition("Not made yet are")[2].partition(":")[0]
    assert set(re.findall(r"`(.+?)`", text)) == missing
