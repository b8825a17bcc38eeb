"""Comparisons from start to end, with runs that train nothing."""

import io
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from matroot._terminal import CommandError
from matroot.train.compare import execution, session, timing
from matroot.train.compare.plan import RunOptions, plan, with_preset
from matroot.train.compare.results import CompareError, read
from matroot.train.compare.session import Request, compare, show_files
from matroot.train.config import as_json

from . import stand_in_run
from .examples import RECIPE, TIMING

PRESETS, SEEDS = ("baseline", "default", "ns"), (0, 1)
FILE = "compare-dbn-short-cifar10.json"
WORKER = (sys.executable, stand_in_run.__file__)


def request(out, behaviour="epoch=0", **changes):
    fields = {
        "name": "dbn",
        "variant": "short",
        "recipe": RECIPE,
        "presets": PRESETS,
        "seeds": SEEDS,
        "out": out,
        "command": "matroot compare dbn",
        "options": RunOptions(data=Path(behaviour)),
        "timing": False,
        "worker": WORKER,
    }
    return Request(**(fields | changes))


@pytest.fixture
def console():
    return Console(record=True, width=100, force_terminal=False, file=io.StringIO())


@pytest.fixture
def trained(monkeypatch):
    """Names of the runs that were made in this process; ``how`` says how a run behaves."""
    made = []

    def train_run(run, options):
        made.append(run.name)
        stand_in_run.train(as_json(run.recipe), run.folder, **how.get(run.name, {}))

    how = {}
    made_and_how = type("Made", (), {"names": made, "how": how})
    monkeypatch.setattr(execution, "train_run", train_run)
    return made_and_how


@pytest.fixture(autouse=True)
def quick(monkeypatch, request):
    """No figures but where they are tested: they take longer than all the rest."""
    monkeypatch.setattr(execution, "POLL", 0.01)
    if "real_page" not in request.fixturenames:
        monkeypatch.setattr(session, "page", lambda comparisons: "a page")


@pytest.fixture
def real_page():
    """For tests that look at the page."""


def names(out):
    return {path.name for path in out.iterdir()}


def test_every_preset_with_the_first_seed_comes_first(tmp_path):
    runs = plan(RECIPE, ("ns", "default", "ns"), (3, 0), tmp_path)
    assert [run.name for run in runs] == ["ns-seed3", "default-seed3", "ns-seed0", "default-seed0"]
    assert {(run.recipe.preset, run.recipe.seed) for run in runs} == {(p, s) for p in ("ns", "default") for s in (3, 0)}


def test_the_network_without_roots_has_no_first_preset():
    recipe = replace(RECIPE, first_preset="ns", first_preset_epochs=2)
    assert with_preset(recipe, "svd-pade").first_preset == "ns"
    found = with_preset(recipe, "baseline")
    assert (found.first_preset, found.first_preset_epochs) == (None, 0)


def test_all_runs_are_made_once(tmp_path, console, trained):
    assert compare(request(tmp_path), console) == 0
    assert trained.names == [f"{preset}-seed{seed}" for seed in SEEDS for preset in PRESETS]
    found = read(tmp_path / FILE)
    assert found.stand_in == "cifar10 stands in for something"
    for run in found.runs:
        expected = [stand_in_run.accuracy(run.preset, run.seed, epoch) for epoch in (1, 2, 3)]
        assert run.curve.test_accuracy == pytest.approx(expected)
        assert run.result["best_accuracy"] == pytest.approx(expected[-1])
    assert names(tmp_path) == {FILE, FILE.replace("json", "html"), *trained.names}
    assert compare(request(tmp_path), console) == 0
    assert len(trained.names) == 6
    assert "6 of 6 runs are there" in console.export_text()


def test_more_presets_join_those_that_are_there(tmp_path, console, trained):
    compare(request(tmp_path, presets=("default",)), console)
    compare(request(tmp_path, presets=("ns", "default")), console)
    assert trained.names.count("default-seed0") == 1
    compare(request(tmp_path, presets=("baseline",), seeds=(0,)), console)
    assert {(run.preset, run.seed) for run in read(tmp_path / FILE).runs} == {
        *((preset, seed) for preset in ("default", "ns") for seed in SEEDS),
        ("baseline", 0),
    }


def test_a_result_file_stands_for_the_folders_of_its_runs(tmp_path, console, trained):
    """Those of another machine: their runs are not made again, and the others join them."""
    compare(request(tmp_path / "there", presets=("baseline", "default")), console)
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(tmp_path / "there" / FILE, here)
    before = read(here / FILE).runs
    assert compare(request(here), console) == 0
    assert trained.names[4:] == ["ns-seed0", "ns-seed1"]
    assert read(here / FILE).runs[:4] == before
    assert [run.preset for run in read(here / FILE).runs[4:]] == ["ns", "ns"]
    assert "4 of 6 runs are there" in console.export_text()


def test_a_folder_wins_over_the_result_file(tmp_path, console, trained):
    """One that was begun anew is not finished, whatever is known of an earlier run."""
    compare(request(tmp_path, presets=("default",), seeds=(0,)), console)
    shutil.rmtree(tmp_path / "default-seed0")
    trained.how["default-seed0"] = {"stop_after": 2}
    with pytest.raises(KeyboardInterrupt):
        execution.train_run(plan(RECIPE, ("default",), (0,), tmp_path)[0], RunOptions())
    trained.how.clear()
    assert compare(request(tmp_path, presets=("default",), seeds=(0,)), console) == 0
    assert trained.names == ["default-seed0"] * 3


def test_what_was_interrupted_goes_on_where_it_was(tmp_path, console, trained):
    trained.how["default-seed0"] = {"stop_after": 2}
    with pytest.raises(KeyboardInterrupt):
        compare(request(tmp_path), console)
    assert trained.names == ["baseline-seed0", "default-seed0"]
    by_name = {f"{run.preset}-seed{run.seed}": run for run in read(tmp_path / FILE).runs}
    assert by_name["baseline-seed0"].result is not None
    assert by_name["default-seed0"].result is by_name["default-seed0"].failure is None
    assert by_name["default-seed0"].curve.epoch == (1, 2)
    assert by_name["ns-seed1"].curve.epoch == ()
    trained.how.clear()
    trained.names.clear()
    assert compare(request(tmp_path), console) == 0
    assert "baseline-seed0" not in trained.names
    assert trained.names[0] == "default-seed0"
    assert all(run.result for run in read(tmp_path / FILE).runs)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_run_that_fails_does_not_stop_the_others(tmp_path, console, trained, jobs):
    for seed in SEEDS:
        trained.how[f"ns-seed{seed}"] = {"fail": ("ns",)}
    assert compare(request(tmp_path, "epoch=0,fail=ns", jobs=jobs), console) == 1
    found = read(tmp_path / FILE)
    assert [run.failure is None for run in found.runs] == [preset != "ns" for seed in SEEDS for preset in PRESETS]
    assert all("the loss is not finite" in run.failure for run in found.of("ns"))
    assert all(run.curve.epoch == (1,) for run in found.of("ns"))
    text = console.export_text()
    assert "ns, seed 0, failed:" in text
    assert "ns-seed0: failed, epoch 1 of 3" in text
    # Tried again by the same command, from where it was.
    trained.how.clear()
    assert compare(request(tmp_path, jobs=jobs), console) == 0
    assert all(run.failure is None for run in read(tmp_path / FILE).runs)


def test_runs_in_processes_give_what_runs_here_give(tmp_path, console, trained):
    compare(request(tmp_path / "here"), console)
    compare(request(tmp_path / "there", jobs=4), console)
    assert read(tmp_path / "here" / FILE).runs == tuple(
        sorted(read(tmp_path / "there" / FILE).runs, key=lambda run: (run.seed, PRESETS.index(run.preset)))
    )
    assert len(trained.names) == 6


def test_a_time_limit_begins_no_epoch_that_ends_too_late(tmp_path, console):
    """Epochs take 0.5 s and the limit is 1.4 s: two of a run's three epochs fit, and no other run starts."""
    slow = request(tmp_path, "epoch=0.5", time_limit=1.4)
    assert compare(slow, console) == 1
    found = read(tmp_path / FILE)
    first, *others = found.runs
    # One fewer on a busy machine, and none of them half done: the stand-in writes after an epoch.
    assert 1 <= len(first.curve.epoch) <= 2
    assert first.result is first.failure is None
    assert not any(run.curve.epoch for run in others)
    assert "6 runs are not finished; the same command goes on." in console.export_text()
    assert compare(request(tmp_path, time_limit=60.0), console) == 0
    assert all(run.curve.epoch == (1, 2, 3) for run in read(tmp_path / FILE).runs)


def test_folders_of_another_recipe_are_left_alone(tmp_path, console, trained):
    compare(request(tmp_path), console)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = request(tmp_path, recipe=replace(RECIPE, lr=0.2, milestones=(1,)))
    with pytest.raises(CommandError, match=r"made with lr = 0.1 \(and milestones\), now it is 0.2") as raised:
        compare(other, console)
    assert FILE in str(raised.value)
    (tmp_path / FILE).unlink()
    with pytest.raises(CommandError, match=r"baseline-seed0.run.json: made with lr"):
        compare(other, console)
    assert {path: path.read_bytes() for path in before if path.exists()} == {
        path: data for path, data in before.items() if path.name != FILE
    }
    assert len(trained.names) == 6


def test_damaged_files_are_named(tmp_path, console, trained):
    compare(request(tmp_path, presets=("ns",)), console)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(CompareError, match="not JSON"):
        compare(request(tmp_path), console)
    (tmp_path / FILE).unlink()
    (tmp_path / "ns-seed1" / "run.json").write_text('{"format": "other"}')
    with pytest.raises(CommandError, match=r'run.json: field format must be "matroot-run 1"'):
        compare(request(tmp_path), console)
    assert trained.names == ["ns-seed0", "ns-seed1"]


def test_metrics_that_a_crash_cut_off_count_up_to_there(tmp_path, console, trained):
    trained.how["default-seed0"] = {"stop_after": 2}
    with pytest.raises(KeyboardInterrupt):
        compare(request(tmp_path, presets=("default",), seeds=(0,)), console)
    metrics = tmp_path / "default-seed0" / "metrics.jsonl"
    metrics.write_text(metrics.read_text()[:-20])
    # Without time to run anything, it says what is there.
    assert compare(request(tmp_path, presets=("default",), seeds=(0,), time_limit=0.0), console) == 1
    assert read(tmp_path / FILE).runs[0].curve.epoch == (1,)


@pytest.fixture
def timed(monkeypatch):
    """Presets of every measurement of steps; it takes no time."""
    found = []

    def time_steps(recipe, presets, options):
        found.append(presets)
        return replace(TIMING, device=device, steps=dict.fromkeys(presets, TIMING.steps["default"]))

    device = timing.device_name(torch.device("cpu"))
    monkeypatch.setattr(timing, "time_steps", time_steps)
    return found


def test_steps_are_timed_once(tmp_path, console, trained, timed):
    for _ in range(2):
        compare(request(tmp_path, timing=True, options=RunOptions(device="cpu")), console)
    assert timed == [PRESETS]


def test_steps_of_added_presets_are_timed_in_turns_with_all_others(tmp_path, console, trained, timed):
    for presets in (("default", "ns"), ("mpa-lya",), ("default",)):
        compare(request(tmp_path, timing=True, presets=presets, options=RunOptions(device="cpu")), console)
    assert timed == [("default", "ns"), ("default", "ns", "mpa-lya")]
    assert {*read(tmp_path / FILE).timing.steps} == {"default", "ns", "mpa-lya"}
    assert "timing a step of 3 presets" in console.export_text()


def test_the_page_may_fail_where_the_runs_do_not(tmp_path, console, trained, monkeypatch, real_page):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert compare(request(tmp_path, presets=("ns",)), console) == 0
    assert "no page: the page needs matplotlib: pip install" in console.export_text()
    with pytest.raises(CommandError, match="matplotlib"):
        show_files([tmp_path / FILE], None, console)


def test_show_runs_nothing_and_writes_the_page_again(tmp_path, console, trained, real_page):
    compare(request(tmp_path), console)
    page = (tmp_path / FILE).with_suffix(".html")
    before = page.read_bytes()
    page.unlink()
    trained.names.clear()
    assert show_files([tmp_path / FILE], None, console) == 0
    assert page.read_bytes() == before
    assert not trained.names
    one_page = tmp_path / "both.html"
    other = tmp_path / "other.json"
    other.write_text((tmp_path / FILE).read_text().replace('"short"', '"published"'))
    assert show_files([tmp_path / FILE, other], one_page, console) == 0
    assert one_page.read_text().count("<section ") == 2
    with pytest.raises(CompareError, match="would replace a result file"):
        show_files([other], other, console)
    assert json.loads(other.read_text())["variant"] == "published"
    with pytest.raises(CompareError, match="cannot write"):
        show_files([other], tmp_path / "missing" / "page.html", console)
