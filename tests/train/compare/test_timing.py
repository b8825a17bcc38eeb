"""What is timed: real steps of every preset, and the same without roots."""

from dataclasses import replace

import pytest
import torch

from matroot import _api
from matroot.train.compare import timing
from matroot.train.compare.plan import RunOptions
from matroot.train.data.batches import Data

from .examples import RECIPE

TINY = replace(RECIPE, image_size=8, batch_size=4, first_preset="ns", first_preset_epochs=1)


class OneBatch:
    def __len__(self):
        return 1

    def epoch(self, number):
        generator = torch.Generator().manual_seed(number)
        yield torch.randn(4, 3, 8, 8, generator=generator), torch.arange(4)


@pytest.fixture
def counted(monkeypatch):
    """Roots that each entry computes in a step; the clock is one that knows the answer."""
    counts = {}
    evaluate = _api._evaluate

    def milliseconds(entries, device):
        calls = []
        monkeypatch.setattr(
            _api,
            "_evaluate",
            lambda A, output, method, *rest: calls.append(method) or evaluate(A, output, method, *rest),
        )
        for name, work in entries.items():
            calls.clear()
            work()
            counts[name] = list(calls)
        known = {"default": 2.0, "mpa-lya": 4.0, "baseline": 1.5}
        return {name: (known.get(name, 1.0), 0.5, 9.0) for name in entries}, {}

    monkeypatch.setattr(timing, "milliseconds_in_turns", milliseconds)
    monkeypatch.setattr(timing.datasets, "open_data", lambda *_, **__: Data(OneBatch(), OneBatch(), 10, 3, None))
    return counts


def test_steps_of_all_presets_and_of_none(counted):
    found = timing.time_steps(TINY, ("baseline", "default", "mpa-lya", "pi"), RunOptions(device="cpu"))
    # Power iteration has no inverse root, which a decorrelated layer needs.
    assert list(found.failures) == ["pi"]
    assert "inverse" in found.failures["pi"]
    assert {name: len(calls) for name, calls in counted.items()} == {
        "baseline": 0,
        "default": 1,
        "mpa-lya": 1,
        "without roots, eager": 0,
    }
    # Of the last epoch, not of the first one.
    assert counted["mpa-lya"][0].name == "pade"
    assert {preset: step.root_share for preset, step in found.steps.items()} == {
        "baseline": None,
        "default": 0.5,
        "mpa-lya": 0.75,
    }
    assert {step.mode for step in found.steps.values()} == {"eager"}
    assert found.device


def test_networks_of_another_size_have_no_share(counted, monkeypatch):
    entry = timing._entry
    sizes = iter((10, 11, 10))
    monkeypatch.setattr(
        timing, "_entry", lambda *given, **named: replace(entry(*given, **named), parameters=next(sizes))
    )
    found = timing.time_steps(TINY, ("default", "mpa-lya"), RunOptions(device="cpu"))
    assert [step.root_share for step in found.steps.values()] == [0.5, None]
