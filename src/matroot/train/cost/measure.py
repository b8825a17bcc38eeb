"""Times of training steps on this device, with random data: what the network costs, and nothing else."""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..._timer import milliseconds, seconds_back_to_back
from ..average import Average
from ..data.batches import Data
from ..graph import CaptureError
from ..network import build, takes_clips, to_channels_last, training_mode
from ..optimiser import create_optimizer
from ..recipe import Recipe
from ..seeding import convolutions
from ..step import EagerStep, GraphStep, why_not_captured
from .jobs import JOBS, PRESETS, Job

STEPS = 5
"""Steps in a row that are timed together: Python may run ahead of the device, as in training."""
BURSTS = 7
BUDGET = 0.5
"""Seconds after which no further steps are timed, but for the three bursts that there are in any case."""


@dataclass(frozen=True)
class RandomBatches:
    """The same batch of random numbers again and again."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return 1

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        yield self.images, self.labels


def measured_recipe(job: Job, preset: str, batch: int) -> Recipe:
    """A job's recipe for one GPU, in bfloat16 and channels last."""
    changes: dict[str, Any] = {"precision": "bfloat16", "channels_last": True, "initial_weights": None}
    return replace(job.settings, preset=preset, batch_size=batch, **changes)


def workloads() -> Iterator[tuple[Job, Recipe]]:
    """Every network, preset and batch once."""
    seen = set()
    for job in JOBS:
        for batch in job.batches:
            for preset in PRESETS:
                recipe = measured_recipe(job, preset, batch)
                if (key := (recipe.model, batch, preset)) not in seen:
                    seen.add(key)
                    yield job, recipe


def random_data(recipe: Recipe, num_classes: int, device: torch.device) -> Data:
    """A batch of the recipe's shape: images, or clips for the video network."""
    clips = takes_clips(recipe)
    frames = (recipe.frames,) if clips else ()
    images = torch.randn(recipe.batch_size, *frames, 3, recipe.image_size, recipe.image_size, device=device)
    batches = RandomBatches(images, torch.randint(num_classes, (recipe.batch_size,), device=device))
    return Data(batches, batches, num_classes, channels=3, stand_in=None, clips=clips)


def measure(recipe: Recipe, num_classes: int, device: torch.device) -> dict[str, Any]:
    """Milliseconds of a step, operation by operation and in a CUDA graph, or why there is none."""
    torch.manual_seed(0)
    data = random_data(recipe, num_classes, device)
    network = build(recipe, data).to(device)
    if recipe.channels_last:
        to_channels_last(network)
    training_mode(network, recipe)
    batch = next(data.train.epoch(1))
    why_not = why_not_captured(network, recipe, device, world=1)
    with convolutions(recipe.deterministic):  # as in a run
        eager = _milliseconds(_step(EagerStep, network, recipe, batch), device)
        graph = None
        if why_not is None:
            free_memory()
            try:
                graph = _milliseconds(_step(GraphStep, network, recipe, batch), device)
            except CaptureError as error:
                why_not = str(error)
    key = {"model": recipe.model, "preset": recipe.preset, "batch": recipe.batch_size}
    return {**key, "eager_ms": eager, "graph_ms": graph, "why_no_graph": why_not}


def free_memory() -> None:
    """Give back the memory of steps that are not used any more, which may be needed for the next."""
    gc.collect()
    torch.cuda.empty_cache()


def _step(
    kind: type[EagerStep], network: nn.Module, recipe: Recipe, batch: tuple[Tensor, Tensor]
) -> Callable[[], None]:
    """A training step as it is in a run."""
    average = None if recipe.ema is None else Average(network, recipe.ema)
    step = kind(network, create_optimizer(network, recipe), recipe, average)
    # Random labels are not to be learnt: a rate near zero keeps all numbers as they are at the start of a run.
    return lambda: step(*batch, 1e-6)


def _milliseconds(step: Callable[[], None], device: torch.device) -> dict[str, float]:
    """Median and quartiles over bursts of steps."""
    seconds_back_to_back(step, STEPS, device.type)  # compiles, and captures a graph
    times: list[float] = []
    end = time.perf_counter() + BUDGET
    while len(times) < 3 or (len(times) < BURSTS and time.perf_counter() < end):
        times.append(seconds_back_to_back(step, STEPS, device.type))
    spread = milliseconds(times)
    return {name: spread[name] for name in ("median", "low", "high")}
