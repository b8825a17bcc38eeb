"""Runs of style exchange: what they leave, and that stopping leaves no trace."""

import io
import json
from dataclasses import replace

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from matroot import models
from matroot._terminal import CommandError
from matroot.train.nonfinite import NonFiniteError
from matroot.train.style.pictures import open_pictures
from matroot.train.style.run import Cadence, build, train
from matroot.train.style.sheet import GAP, sample_sheet
from matroot.train.style.step import LOSSES, Step

from ..outcome import assert_same
from .small import cyclegan, small_recipe

AT_ONCE = 1e-9
"""A time limit after which a call stops with its first step."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return cyclegan(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def go(data, tmp_path):
    """Train in a folder of this name, with lines of two steps and a sample every four."""

    def trained(name, recipe, **options):
        cadence = Cadence(report=2, sample=4)
        return train(recipe, tmp_path / name, data=data, device="cpu", quiet=True, cadence=cadence, **options)

    return trained


def outcome(folder):
    """All that a run leaves behind, but for times; the last sheet stands for all."""
    last = torch.load(folder / "last.pt", weights_only=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((folder / "run.json").read_text())["result"]
    for row in (*rows, *last["history"], result):
        for name in ("seconds", "step_ms"):
            row.pop(name, None)
    assert rows == last["history"]
    return last, result, load_file(folder / "last.safetensors"), (folder / "samples/step-000006.png").read_bytes()


def test_what_a_run_leaves(go, tmp_path, capsys):
    recipe = small_recipe()
    result = go("run", recipe)
    folder = tmp_path / "run"
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert [row["lr"] for row in rows] == [1e-3, 1e-3, 5e-4]
    assert set(LOSSES) < rows[0].keys()
    assert {name: rows[-1][name] for name in LOSSES} == {name: getattr(result, name) for name in LOSSES}
    assert sorted(path.name for path in (folder / "samples").iterdir()) == ["step-000004.png", "step-000006.png"]
    described = json.loads((folder / "run.json").read_text())
    assert described["recipe"] == json.loads(json.dumps(vars(recipe)))
    assert described["result"]["iterations"] == 6
    assert isinstance(models.load(folder / "last.safetensors"), models.StyleExchange)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "fields", [{}, {"preset": "mpa-lya", "precision": "bfloat16", "channels_last": True}], ids=["plain", "bfloat16"]
)
def test_stopped_and_resumed(fields, go, tmp_path):
    recipe = small_recipe(**fields)
    assert go("whole", recipe) is not None
    for step in range(1, recipe.iterations):
        assert go("parts", recipe, resume=True, time_limit=AT_ONCE) is None
        assert json.loads((tmp_path / "parts/run.json").read_text())["result"] is None
        rows = [json.loads(line) for line in (tmp_path / "parts/metrics.jsonl").read_text().splitlines()]
        assert [row["step"] for row in rows] == [*range(2, step, 2), step]
    assert go("parts", recipe, resume=True, time_limit=AT_ONCE) is not None
    assert_same(outcome(tmp_path / "parts"), outcome(tmp_path / "whole"))
    assert go("parts", recipe, resume=True).iterations == 6


def test_time_for_a_few_steps(go, tmp_path, monkeypatch):
    """No step is begun that would end later, if it took as long as the longest before it."""
    now = 0.0
    ordinary = Step.__call__

    def slow(self, *batch):
        nonlocal now
        now += 10
        return ordinary(self, *batch)

    monkeypatch.setattr("matroot.train.style.run.time.monotonic", lambda: now)
    monkeypatch.setattr(Step, "__call__", slow)
    assert go("run", small_recipe(), time_limit=35) is None
    assert json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])["step"] == 3


def test_interrupted(go, tmp_path, monkeypatch, data):
    """Steps after the last checkpoint are taken again."""
    go("whole", small_recipe())
    ordinary, calls = Step.__call__, []

    def failing(self, *batch):
        calls.append(batch)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return ordinary(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(Step, "__call__", failing)
        with pytest.raises(KeyboardInterrupt):
            go("parts", small_recipe())
    go("parts", small_recipe(), resume=True)
    assert_same(outcome(tmp_path / "parts"), outcome(tmp_path / "whole"))


def test_seeds_differ(go, tmp_path):
    """Otherwise the tests above would show nothing."""
    for seed in (0, 1):
        go(str(seed), small_recipe(seed=seed, iterations=2))
    weights = [load_file(tmp_path / seed / "last.safetensors")["photo.content_encoder.0.weight"] for seed in "01"]
    assert not torch.equal(*weights)


def test_refused(go):
    recipe = small_recipe(iterations=2)
    go("run", recipe)
    with pytest.raises(CommandError, match="holds a run; --resume goes on with it"):
        go("run", recipe)
    with pytest.raises(CommandError, match=r"lr is 0.001 there and 0.5 here"):
        go("run", replace(recipe, lr=0.5), resume=True)
    with pytest.raises(CommandError, match="image_size must be a multiple of 4"):
        go("other", replace(recipe, image_size=33))
    with pytest.raises(CommandError, match=r"style_exchange cannot be built: .* has no inverse root"):
        go("other", replace(recipe, preset="pi"))


def test_a_loss_that_is_not_finite_stops_the_run(go, tmp_path):
    with pytest.raises(NonFiniteError, match=r"between steps 1 and 2: the \w+ loss is not finite. .* of step 0"):
        go("run", small_recipe(lr=1e30, clip_norm=None))
    assert not (tmp_path / "run/last.pt").exists()


def test_sheet(data):
    """Two rows of six pictures, the first two of them as they were."""
    pictures = open_pictures("folder", 32, data, torch.device("cpu"))
    network, _ = build(small_recipe())
    with Image.open(io.BytesIO(sample_sheet(network, pictures))) as image:
        assert image.size == (6 * (32 + GAP) - GAP, 2 * (32 + GAP) - GAP)
        for k, domain in enumerate((pictures.photos, pictures.paintings)):
            shown = image.crop((k * (32 + GAP), 32 + GAP, k * (32 + GAP) + 32, 64 + GAP)).tobytes()
            assert shown == domain.test[1].movedim(0, -1).contiguous().numpy().tobytes()
    assert all(parameter.grad is None for parameter in network.parameters())
