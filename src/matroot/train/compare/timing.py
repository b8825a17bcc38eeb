"""How long a training step takes with every preset, and what part of it is the root."""

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from ..._environment import environment
from ..._terminal import CommandError
from ..._timer import Work
from .. import data as datasets
from .. import distributed, network
from ..data.batches import Data
from ..distributed import Ranks
from ..loop import Trainer
from ..mixing import mix
from ..recipe import Recipe
from ..seeding import convolutions
from ..step import GraphStep
from .clock import milliseconds_in_turns
from .plan import BASELINE, RunOptions, with_preset
from .results import StepTime, Timing
from .without_roots import roots_left_out

REFERENCE = "mtp-lya"
"""Whose network is timed without roots, which are not computed; in a graph it must be one that can be captured."""


@dataclass(frozen=True)
class _Entry:
    work: Work
    mode: str
    parameters: int


def time_steps(recipe: Recipe, presets: Sequence[str], options: RunOptions) -> Timing:
    """Steps of the recipe with every preset on its first batch, alone on the device, in turns.

    Steps run as in training: replayed from a CUDA graph where that is possible. The share of the root is what a step
    without roots is shorter, in the same mode; None for networks of another size, whose head is another one. A preset
    that cannot be timed is named with the reason. CommandError where the data cannot be opened.
    """
    ranks = distributed.start(options.device)
    data = datasets.open_data(recipe, options.data, ranks.device, workers=0)
    entries, failures = dict[str, _Entry](), dict[str, str]()
    with convolutions(recipe.deterministic):
        for preset in presets:
            try:
                entries[preset] = _entry(with_preset(recipe, preset), data, ranks, options.graph)
            except (CommandError, RuntimeError) as error:
                failures[preset] = " ".join(str(error).split())[:300]
        modes = {entry.mode for preset, entry in entries.items() if preset != BASELINE}
        without = {
            mode: _entry(with_preset(recipe, REFERENCE), data, ranks, mode == "graph", without_roots=True)
            for mode in modes
        }
        # Names that no preset has.
        works = {preset: entry.work for preset, entry in entries.items()}
        works |= {f"without roots, {mode}": entry.work for mode, entry in without.items()}
        times, failed = milliseconds_in_turns(works, ranks.device)
    steps = {}
    for preset, entry in entries.items():
        if preset in times:
            reference = without.get(entry.mode)
            bare = times.get(f"without roots, {entry.mode}")
            share = None
            if preset != BASELINE and bare and reference and reference.parameters == entry.parameters:
                share = 1 - bare[0] / times[preset][0]
            steps[preset] = StepTime(*times[preset], entry.mode, share)
    del entries, without, works
    gc.collect()
    if ranks.device.type == "cuda":
        torch.cuda.empty_cache()
    return Timing(device_name(ranks.device), steps, failures | failed)


def device_name(device: torch.device) -> str:
    """What steps are timed on, in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else environment()["processor"]


def _entry(recipe: Recipe, data: Data, ranks: Ranks, graph: bool | None, without_roots: bool = False) -> _Entry:
    trainer = Trainer(recipe, data, ranks, graph, False, lambda line: None)
    # In the last epoch the preset is the run's own, whatever its first epochs have.
    step = trainer.step_of_epoch(recipe.epochs)
    network.training_mode(trainer.model, recipe)
    images, labels = next(iter(data.train.epoch(1)))
    images, targets = mix(recipe, data.num_classes, images, labels, 1, 0)
    outside: Callable = roots_left_out if without_roots else nullcontext

    def work() -> None:
        with outside():
            # A rate of zero: every step sees the same network.
            step(images, targets, 0.0)

    mode = "graph" if isinstance(step, GraphStep) else "eager"
    return _Entry(work, mode, sum(p.numel() for p in trainer.network.parameters()))
