"""A network in training: epochs, evaluation and the state between them."""

import copy
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from .._terminal import CommandError
from ..backends.triton.cache_folder import keep_cache_folder
from ..nn.statistics import StatisticsError, update_statistics
from . import distributed, network
from .average import Average
from .data.batches import Data
from .distributed import Ranks
from .evaluation import Scores, evaluate
from .mixing import mix
from .nonfinite import NonFiniteError, diagnose
from .objective import autocast
from .optimiser import create_optimizer
from .recipe import Recipe
from .schedule import learning_rate
from .seeding import seed_generators
from .step import EagerStep, GraphStep, why_not_captured

READ_EVERY = {"cpu": 1, "cuda": 50}
"""Steps between two looks at the totals, which wait for a GPU."""

OnSteps = Callable[[int, float, float, float], None]
"""Called with the steps since the last call, mean loss, accuracy, and images per second of the epoch so far."""


class Trainer:
    """Trains and evaluates a recipe's network on this process's device.

    graph: whether steps are replayed from a CUDA graph; None where that is possible, CommandError if it must be and
        is not.
    say: called with a line for the person who watches.
    """

    def __init__(
        self, recipe: Recipe, data: Data, ranks: Ranks, graph: bool | None, fsdp: bool, say: Callable[[str], None]
    ) -> None:
        self.recipe, self.data, self.ranks = recipe, data, ranks
        self.steps = len(data.train)
        self._graph, self._say = graph, say
        seed_generators(recipe.seed)
        plain = network.build(recipe, data)
        self._plain = copy.deepcopy(plain)
        plain.to(ranks.device)
        if recipe.channels_last:
            network.to_channels_last(plain)
        self.network = distributed.synchronise(plain, ranks)
        if recipe.compile:
            keep_cache_folder()
            self.network.compile()
        self.model = distributed.parallel(self.network, recipe, ranks, fsdp)
        self.optimizer = create_optimizer(self.network, recipe)
        self.average = None if recipe.ema is None else Average(self.network, recipe.ema)
        self.scaler = GradScaler(ranks.device.type) if recipe.precision == "float16" else None
        self._preset = recipe.preset
        self._step: EagerStep | None = None

    def step_of_epoch(self, epoch: int) -> EagerStep:
        """The step of epoch 1, 2, ...; a new one where the preset changes, as what a graph has captured cannot."""
        preset = network.preset_of_epoch(self.recipe, epoch)
        if preset != self._preset:
            network.set_preset(self.network, preset)
            self._say(f"roots by {preset} from epoch {epoch} on")
            self._preset, self._step = preset, None
        if self._step is None:
            self._step = self._new_step()
        return self._step

    def train_epoch(self, epoch: int, on_steps: OnSteps) -> dict[str, Any]:
        """Train epoch 1, 2, ...; its part of a line of ``metrics.jsonl``.

        NonFiniteError, naming step and layer, where a loss or a gradient is not finite.
        """
        step, every = self.step_of_epoch(epoch), READ_EVERY[self.ranks.device.type]
        network.training_mode(self.model, self.recipe)
        seed_generators(self.recipe.seed, epoch, self.ranks.rank)
        step.totals.start_epoch()
        start, lr, loss, accuracy, rate = time.perf_counter(), 0.0, 0.0, 0.0, 0.0
        for index, (images, labels) in enumerate(self.data.train.epoch(epoch)):
            images, targets = mix(self.recipe, self.data.num_classes, images, labels, epoch, index)
            lr = learning_rate(self.recipe, (epoch - 1) * self.steps + index, self.steps)
            step(images, targets, lr)
            if (index + 1) % every == 0 or index + 1 == self.steps:
                sums = distributed.sum_over_ranks(step.totals.read(), self.ranks).tolist()
                if sums[-1]:
                    raise self._nonfinite(epoch, int(sums[3]) // self.ranks.world)
                examples = max(sums[2], 1.0)  # float16 may have skipped all of them
                loss, accuracy = sums[0] / examples, sums[1] / examples
                rate = examples / (time.perf_counter() - start)
                on_steps(index % every + 1, loss, accuracy, rate)
        seconds = time.perf_counter() - start
        return {
            "epoch": epoch,
            "lr": lr,
            "train_loss": loss,
            "train_accuracy": accuracy,
            "seconds": seconds,
            "images_per_second": rate,
            "step_ms": 1e3 * seconds / self.steps,
        }

    def evaluate(self, epoch: int) -> Scores:
        """Scores on the test split after an epoch, of the average where there is one."""
        with self._evaluated():
            if self.recipe.recalibrate:
                batches = islice(self.data.train.epoch(epoch), self.recipe.recalibrate)
                # Layers average in another way meanwhile, which would be compiled for these few batches.
                eager = torch.compiler.set_stance("force_eager") if self.recipe.compile else nullcontext()
                with autocast(self.recipe, self.ranks.device), eager:
                    images = (images for images, _ in batches)
                    try:
                        update_statistics(self.model, images, network.frozen_norms(self.network, self.recipe))
                    except StatisticsError as error:
                        raise NonFiniteError(f"recalibrate after epoch {epoch}: {error}") from error
                if self.average is not None:
                    self.average.restart()  # its weights as they are, and these statistics
            return evaluate(self.model, self.data.test, self.recipe, self.ranks)

    def state(self) -> dict[str, Any]:
        """The states of a Checkpoint, on the main process; every process must call this."""
        weights, optimizer = distributed.whole_state(self.model, self.optimizer)
        average = None
        if self.average is not None:
            with self._evaluated():
                average = distributed.whole_state(self.model)[0]
        scaler = None if self.scaler is None else self.scaler.state_dict()
        return {"network": weights, "average": average, "optimizer": optimizer, "scaler": scaler}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        if self.average is not None:
            distributed.load_whole_state(self.model, None, state["average"])
            self.average.restart()
        distributed.load_whole_state(self.model, self.optimizer, state["network"], state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])

    def evaluated_network(self, state: dict[str, Any]) -> nn.Module:
        """The network that was evaluated, on the CPU and as ``matroot.models`` made it, from :meth:`state`."""
        self._plain.load_state_dict(state["network"] if self.average is None else state["average"])
        return self._plain

    def _evaluated(self) -> Any:
        return nullcontext() if self.average is None else self.average.applied()

    def _new_step(self) -> EagerStep:
        reason = why_not_captured(self.network, self.recipe, self.ranks.device, self.ranks.world)
        if self._graph and reason is not None:
            raise CommandError(f"--graph: {reason}")
        if self._graph is None and reason is not None and self.ranks.device.type == "cuda":
            self._say(f"steps are not captured in a CUDA graph: {reason}")
        if self._graph is not False and reason is None:
            return GraphStep(self.model, self.optimizer, self.recipe, self.average)
        return EagerStep(self.model, self.optimizer, self.recipe, self.average, self.scaler)

    def _nonfinite(self, epoch: int, index: int) -> NonFiniteError:
        """The error of a step of this epoch, found by repeating its batch with the weights before it."""
        images, labels = next(islice(self.data.train.epoch(epoch), index, None))
        images, targets = mix(self.recipe, self.data.num_classes, images, labels, epoch, index)
        layer = diagnose(self.network, self.recipe, images, targets)  # DDP has names of its own
        kept = f"The checkpoint is that of epoch {epoch - 1}" if epoch > 1 else "There is no checkpoint yet"
        return NonFiniteError(
            f"training stopped in epoch {epoch}, at step {index + 1} of {self.steps}: {layer}. "
            f"{kept}. A smaller lr, clip_norm or precision float32 may help"
        )
