"""``train()`` under torchrun: two processes reproduce the run of one, and resume each other's."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import nn

from matroot import models
from matroot.nn import SecondOrderHead
from matroot.train import data, distributed
from matroot.train.nonfinite import NonFiniteError
from matroot.train.run import train

from . import tiny
from .ranks import on_ranks

TOLERANCE = 1e-5
"""Of float32 weights and losses of size 1 after 12 steps: sums in another order differ by a few eps = 1e-7, and the
network and its steps magnify that by less than 30."""
TIMES = ("seconds", "images_per_second", "step_ms")


@dataclass(frozen=True)
class Part:
    """The part that one process has of every batch."""

    whole: Any
    rank: int
    world: int

    def __len__(self):
        return len(self.whole)

    def epoch(self, number):
        for batch in self.whole.epoch(number):
            yield tuple(tensor.chunk(self.world)[self.rank] for tensor in batch)


class TinyTransformer(nn.Module):
    """A stem with a norm, an encoder to shard, and the second-order head."""

    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        self.stem = nn.Sequential(nn.Conv2d(tiny.CHANNELS, 8, 2, stride=2, bias=False), nn.BatchNorm2d(8))
        self.encoder = nn.Sequential(*(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()) for _ in range(2)))
        self.head = SecondOrderHead(8, num_classes, reduce_to=4)

    def get_classifier(self):
        return self.head

    def forward(self, images):
        return self.head(self.encoder(self.stem(images).flatten(2).mT))


def create(name, num_classes, **_):
    if name == "tiny_transformer":
        return TinyTransformer(num_classes)
    network = tiny.TinyNetwork(num_classes)
    network.dropout.p = 0.0  # every process drops its own
    return network


def open_data(recipe, root, device, rank, world, workers):
    whole = tiny.tiny_data(recipe)
    parts = (Part(batches, rank, world) for batches in (whole.train, whole.test))
    return data.batches.Data(*parts, whole.num_classes, whole.channels, whole.stand_in)


def run(recipe, folder, ranks=None, **options):
    """``train()`` on the network and data of this file; by the processes that have joined, where ``ranks`` is given."""
    with pytest.MonkeyPatch.context() as patch:
        tiny.install(patch)
        patch.setattr(models, "create", create)
        patch.setattr(data, "open_data", open_data)
        if ranks is not None:  # a process joins once
            patch.setattr(distributed, "start", lambda device: ranks)
            patch.setattr(distributed, "stop", lambda ranks: None)
        return train(recipe, folder, device="cpu", quiet=True, **options)


def found(folder):
    """Metrics and weights of a run."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    metrics = [{name: value for name, value in line.items() if name not in TIMES} for line in lines]
    last = torch.load(folder / "last.pt", weights_only=True)
    return metrics, last["network"], last["average"]


def assert_same(one, other, tolerance=TOLERANCE):
    torch.testing.assert_close(found(one), found(other), rtol=tolerance, atol=tolerance)


CONVOLUTIONAL = tiny.tiny_recipe(momentum=0.9, clip_norm=1.0)
TRANSFORMER = tiny.tiny_recipe(model="tiny_transformer", optimizer="adamw", lr=0.01, ema=0.9, clip_norm=1.0)


def _two(ranks, folder):
    run(CONVOLUTIONAL, folder / "two", ranks)
    run(CONVOLUTIONAL, folder / "two-two", ranks, stop_after=1)
    run(CONVOLUTIONAL, folder / "two-two", ranks, resume=True)
    run(CONVOLUTIONAL, folder / "two-one", ranks, stop_after=2)
    run(TRANSFORMER, folder / "sharded", ranks, fsdp=True)
    run(TRANSFORMER, folder / "sharded-one", ranks, fsdp=True, stop_after=2)
    run(TRANSFORMER, folder / "one-sharded", ranks, fsdp=True, resume=True)
    run(replace(TRANSFORMER, channels_last=True), folder / "channels-last", ranks, fsdp=True)


def test_two_processes_reproduce_the_run_of_one(tmp_path):
    run(CONVOLUTIONAL, tmp_path / "one")
    run(TRANSFORMER, tmp_path / "whole")
    run(TRANSFORMER, tmp_path / "one-sharded", stop_after=1)
    on_ranks(_two, 2, tmp_path)
    assert_same(tmp_path / "two", tmp_path / "one")
    assert_same(tmp_path / "two-two", tmp_path / "two", tolerance=0)
    run(CONVOLUTIONAL, tmp_path / "two-one", resume=True)
    assert_same(tmp_path / "two-one", tmp_path / "one")
    assert_same(tmp_path / "sharded", tmp_path / "whole")
    assert_same(tmp_path / "one-sharded", tmp_path / "whole")
    assert_same(tmp_path / "channels-last", tmp_path / "whole")
    run(TRANSFORMER, tmp_path / "sharded-one", resume=True)
    assert_same(tmp_path / "sharded-one", tmp_path / "whole")


def _never_finite(ranks, folder):
    with pytest.raises(NonFiniteError, match=r"epoch 1, at step 2 of 4: the output of whiten "):
        run(replace(CONVOLUTIONAL, lr=1e38, clip_norm=None), folder, ranks)


def test_a_layer_is_named_as_by_one_process(tmp_path):
    on_ranks(_never_finite, 2, tmp_path)
