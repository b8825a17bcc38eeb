"""A run that was stopped, whenever and however, goes on to the result of one that was not: the same bits."""

import json
import os
import random
import signal
import time
from multiprocessing import get_context

import pytest
import torch
from safetensors.torch import load_file

from matroot.train import checkpoint, run
from matroot.train.step import EagerStep

from .tiny import install, tiny_recipe

RECIPES = {
    "sgd": {"clip_norm": 1.0, "classifier_lr_factor": 5.0},
    "adamw": {
        "optimizer": "adamw",
        "lr": 0.01,
        "schedule": "cosine",
        "warmup_epochs": 1,
        "mixup": 0.8,
        "cutmix": 1.0,
        "label_smoothing": 0.1,
        "ema": 0.8,
    },
    "bfloat16": {"precision": "bfloat16", "channels_last": True},
    "float16": {"precision": "float16", "ema": 0.5},
    "presets": {"preset": "svd-pade", "first_preset": "ns", "first_preset_epochs": 2, "freeze_norms": True},
}


def outcome(folder):
    """All that a run leaves behind, but for times."""
    last = torch.load(folder / "last.pt", weights_only=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in (*rows, *last["history"]):
        for name in ("seconds", "images_per_second", "step_ms"):
            del row[name]
    assert rows == last["history"]
    result = json.loads((folder / "run.json").read_text())["result"]
    del result["seconds"], result["step_ms"]
    return last, result, load_file(folder / "best.safetensors")


def assert_same(found, expected):
    """The same dictionaries, numbers and bits of tensors."""
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for name in found:
            assert_same(found[name], expected[name])
    elif isinstance(found, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(found, torch.Tensor):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
    else:
        assert found == expected


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", RECIPES)
def test_stopped_after_an_epoch(name, tmp_path):
    recipe = tiny_recipe(**RECIPES[name])
    assert run.train(recipe, tmp_path / "whole", quiet=True) is not None
    for _ in range(2):
        assert run.train(recipe, tmp_path / "parts", quiet=True, resume=True, stop_after=1) is None
        assert json.loads((tmp_path / "parts/run.json").read_text())["result"] is None
    assert run.train(recipe, tmp_path / "parts", quiet=True, resume=True) is not None
    assert_same(outcome(tmp_path / "parts"), outcome(tmp_path / "whole"))


@pytest.mark.usefixtures("tiny")
def test_runs_of_other_seeds_differ(tmp_path):
    """Otherwise the tests of this file would show nothing."""
    found = []
    for seed in (0, 1):
        run.train(tiny_recipe(seed=seed, epochs=1), tmp_path / str(seed), quiet=True)
        found.append(outcome(tmp_path / str(seed))[0]["network"]["stem.weight"])
    assert not torch.equal(*found)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_stopped_within_an_epoch(failure, tmp_path, monkeypatch):
    """Generators, momentum and metrics of the half epoch leave no trace."""
    recipe = tiny_recipe(**RECIPES["adamw"])
    run.train(recipe, tmp_path / "whole", quiet=True)
    ordinary, calls = EagerStep.__call__, []

    def failing(self, *batch):
        calls.append(batch)
        if len(calls) == 7:
            raise failure
        ordinary(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(EagerStep, "__call__", failing)
        with pytest.raises(failure):
            run.train(recipe, tmp_path / "parts", quiet=True)
    (tmp_path / "parts/metrics.jsonl").write_text('{"epoch": 1}\n{"epo')
    run.train(recipe, tmp_path / "parts", quiet=True, resume=True)
    assert_same(outcome(tmp_path / "parts"), outcome(tmp_path / "whole"))


def train_for_long(folder):
    """What a process does until it is killed."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        (folder / "started").touch()
        run.train(long_recipe(), folder, quiet=True, resume=True)


def long_recipe():
    return tiny_recipe(epochs=25, **RECIPES["adamw"])


@pytest.mark.usefixtures("tiny")
def test_killed_at_random_moments(tmp_path):
    """SIGKILL leaves no time for anything: the checkpoint is that of some epoch before, and whole."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["matroot.train.run", "tests.train.tiny"])
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    epochs = []
    for _ in range(5):
        process = context.Process(target=train_for_long, args=(killed,))
        process.start()
        while not (killed / "started").exists():
            assert process.exitcode is None
            time.sleep(0.01)
        (killed / "started").unlink()
        time.sleep(random.uniform(0.2, 0.6))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if (killed / "last.pt").exists():
            epochs.append(len(checkpoint.load(killed / "last.pt").history))
    assert epochs == sorted(epochs)
    run.train(long_recipe(), killed, quiet=True, resume=True)
    run.train(long_recipe(), whole, quiet=True)
    assert_same(outcome(killed), outcome(whole))
