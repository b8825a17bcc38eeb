"""A run that was stopped, whenever and however, goes on to the result of one that was not: the same bits."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
import torch

from matroot.train import checkpoint, run
from matroot.train.step import EagerStep

from . import until_killed
from .outcome import assert_same, outcome
from .tiny import tiny_recipe

RECIPES = {
    "sgd": {"clip_norm": 1.0, "classifier_lr_factor": 5.0, "recalibrate": 2},
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
    "float16": {"precision": "float16", "ema": 0.5, "recalibrate": 1},
    "presets": {"preset": "svd-pade", "first_preset": "ns", "first_preset_epochs": 2, "freeze_norms": True},
}


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


def epochs_in(folder):
    """Of the checkpoint, which must be whole; 0 before there is one."""
    path = folder / "last.pt"
    return len(checkpoint.load(path).history) if path.exists() else 0


@pytest.mark.usefixtures("tiny")
def test_killed_at_random_moments(tmp_path, set_threads):
    """SIGKILL leaves no time for anything: the checkpoint is that of some epoch before, and whole."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", until_killed.__name__, str(killed)]
    root = Path(__file__).parent.parent.parent
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, bufsize=1, cwd=root) as trainers:
        for _ in range(2):
            before = epochs_in(killed)
            trainers.stdin.write("\n")
            process = int(trainers.stdout.readline())
            while epochs_in(killed) == before:
                assert trainers.poll() is None
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.1))  # about an epoch
            os.kill(process, signal.SIGKILL)
            assert int(trainers.stdout.readline()) == -signal.SIGKILL
            assert before < epochs_in(killed) < until_killed.EPOCHS
    set_threads(1)  # as the processes that were killed: with more, sums differ in the last bits
    run.train(until_killed.RECIPE, killed, quiet=True, resume=True)
    run.train(until_killed.RECIPE, whole, quiet=True)
    assert_same(outcome(killed), outcome(whole))
