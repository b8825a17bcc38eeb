"""What the large recipes cost: steps are measured as they are trained, and the rest is arithmetic."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from matroot._terminal import CommandError, exit_status
from matroot.train.cost import __main__ as program
from matroot.train.cost import measure as measuring
from matroot.train.cost.estimate import Step, estimates, estimates_table, read_steps
from matroot.train.cost.jobs import JOBS, PRESETS
from matroot.train.recipes import RECIPES

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/cluster.md"
COMMITTED = ROOT / "benchmarks/results/steps-nvidia-h200.json"


def steps_of_all(milliseconds=36.0):
    """Every measured batch takes the same time."""
    keys = {(job.settings.model, preset, batch) for job in JOBS for batch in job.batches for preset in PRESETS}
    return [Step(*key, eager=milliseconds, graph=None) for key in keys]


def test_hours_and_cost_by_hand():
    """ImageNet by batches of 256 for 60 epochs: 5004 x 60 x 36 ms are 3 hours of 8 GPUs, at $2 for one."""
    found = next(e for e in estimates(steps_of_all(), 8) if e.preset == "default")
    assert (found.job.title, found.job.settings.model, found.gpus) == ("ImageNet", "resnet50_gcp", 8)
    assert found.hours == pytest.approx(5004 * 60 * 0.036 / 3600)
    assert found.gpu_hours == pytest.approx(24.02, abs=0.01)
    row = estimates_table([found], 2.0).splitlines()[-1]
    assert row == "| gcp, ImageNet | resnet50_gcp | default | 5,004 x 60 | 8 | 36.0 | 3.0 | 24.0 | $48 |"


@pytest.mark.parametrize(
    ("available", "job", "gpus", "factor"),
    [
        (8, ("gcp", "ImageNet"), 8, 1),  # 32 each, as measured
        (4, ("gcp", "ImageNet"), 4, 1),  # 64 each, as measured
        (1, ("gcp", "ImageNet"), 1, 4),  # four times the largest measured batch
        (64, ("gcp", "ImageNet"), 8, 1),  # more GPUs would have less than the smallest measured batch
        (8, ("video", "HMDB51"), 4, 1),
        (3, ("video", "HMDB51"), 2, 2),  # three do not divide 32 clips
    ],
)
def test_gpus_share_a_batch(available, job, gpus, factor):
    found = next(e for e in estimates(steps_of_all(10.0), available) if (e.job.recipe, e.job.title) == job)
    assert found.gpus == gpus
    assert found.step_ms == pytest.approx(10.0 * factor)


def test_jobs_are_recipes_whose_batches_divide():
    for job in JOBS:
        assert job.settings is RECIPES[job.recipe][job.variant]
        assert list(job.batches) == sorted(job.batches)
        assert all(job.settings.batch_size % batch == 0 for batch in job.batches)
        assert job.settings.batch_size >= job.batches[-1]


def test_steps_that_were_not_measured_have_no_row():
    some = [step for step in steps_of_all() if step.model != "tea50_tcp" and step.preset == "default"]
    assert [e.job.recipe for e in estimates(some, 8)] == ["gcp", "sovit", "sovit"]


def test_every_network_is_measured_once():
    found = [(recipe.model, recipe.batch_size, recipe.preset) for _, recipe in measuring.workloads()]
    assert len(found) == len(set(found)) == 15
    assert {recipe.precision for _, recipe in measuring.workloads()} == {"bfloat16"}


def test_a_step_is_measured_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "STEPS", 1)
    monkeypatch.setattr(measuring, "BUDGET", 0.0)
    recipe = replace(RECIPES["dbn"]["digits"], model="resnet18_dbn", batch_size=2, image_size=8, ema=0.9)
    found = measuring.measure(recipe, 10, torch.device("cpu"))
    times = found["eager_ms"]
    assert 0 < times["low"] <= times["median"] <= times["high"]
    assert found["graph_ms"] is None
    assert "no CUDA graphs on cpu" in found["why_no_graph"]
    path = tmp_path / "folder/steps.json"
    program.save(path, [found, {**found, "graph_ms": {"median": 1.5}}])
    assert read_steps(path) == [
        Step("resnet18_dbn", "default", 2, times["median"], None),
        Step("resnet18_dbn", "default", 2, times["median"], 1.5),
    ]
    content = json.loads(path.read_text())
    assert content["command"] == "python -m matroot.train.cost"
    assert content["environment"]["torch"] == torch.__version__


def test_clips_have_frames():
    job = next(job for job in JOBS if job.recipe == "video")
    recipe = replace(measuring.measured_recipe(job, "default", 2), image_size=6)
    ((clips, labels),) = measuring.random_data(recipe, 400, torch.device("cpu")).train.epoch(1)
    assert (clips.shape, labels.shape) == ((2, 8, 3, 6, 6), (2,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*steps.json: No such file"),
        ("{", "steps.json is not JSON"),
        ("[]", "has format None; 'matroot-steps 1' was expected"),
        ('{"format": "matroot-steps 2"}', "has format 'matroot-steps 2'"),
        ('{"format": "matroot-steps 1", "results": [{"model": "x"}]}', "damaged: a result lacks 'graph_ms'"),
    ],
)
def test_other_files_are_explained(content, message, tmp_path):
    path = tmp_path / "steps.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError, match=message):
        read_steps(path)


def test_the_command(tmp_path, capsys, monkeypatch):
    path = tmp_path / "steps.json"
    times = {"median": 36.0, "low": 35.0, "high": 37.0}
    result = {"model": "resnet50_gcp", "preset": "default", "batch": 64, "eager_ms": times, "graph_ms": times}
    program.save(path, [result])
    assert exit_status(lambda: program.main(["--estimate", str(path), "--gpus", "4", "--price", "1"])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| resnet50_gcp | 64 | default | 36.0 | 36.0 | 1,778 |"
    assert lines[-1].endswith("| 4 | 36.0 | 3.0 | 12.0 | $12 |")
    assert exit_status(lambda: program.main(["--estimate", str(path), "--gpus", "0"])) == 2
    assert "--gpus must be 1 at least" in capsys.readouterr().err
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert exit_status(lambda: program.main(["--out", str(tmp_path)])) == 2
    assert "there is no CUDA device here" in capsys.readouterr().err


def test_the_page_has_the_tables_of_the_committed_file():
    if not COMMITTED.exists():
        pytest.skip(f"{COMMITTED.name} is not committed")
    between = re.search(r"<!-- tables -->\n(.*?)\n<!-- end of tables -->", PAGE.read_text(), re.DOTALL)
    assert between is not None
    assert between[1].strip() == program.tables(COMMITTED), "put what --estimate prints there"
