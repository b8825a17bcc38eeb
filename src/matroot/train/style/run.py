"""Runs of style exchange: one call, one folder."""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ... import models
from ..._files import write_whole
from ..._terminal import CommandError
from .. import distributed
from ..config import counted
from ..folder import SAMPLES, RunFolder
from ..interruption import Interruption
from ..network import to_channels_last
from ..nonfinite import NonFiniteError
from ..progress import Reporter
from ..seeding import convolutions, seed_generators
from ..step import why_roots_not_captured
from .losses import Discriminators
from .pictures import Pictures, batch, open_pictures
from .recipe import StyleRecipe, check, learning_rate
from .sheet import sample_sheet
from .step import LOSSES, GraphStep, Step

WEIGHTS = "last.safetensors"
"""The generators, in a run's folder."""
PHOTOS, PAINTINGS = 0, 1
"""Numbers of the domains for random numbers."""


@dataclass(frozen=True)
class Cadence:
    """How often a run says and writes something; nothing of this changes its weights."""

    report: int = 50
    """Steps of a line of ``metrics.jsonl``."""
    sample: int = 1000
    """Steps between two checkpoints, each with a sample sheet; rounded up to whole lines."""


@dataclass(frozen=True)
class StyleResult:
    """How a run ended: means over its last line of ``metrics.jsonl``."""

    iterations: int
    seconds: float
    """Of training alone."""
    step_ms: float
    """Median over lines; the first, which warms up, is left out where there are others."""
    adversarial: float
    reconstruction: float
    cycle: float
    style: float
    content: float
    discriminator: float

    @classmethod
    def of(cls, history: Sequence[dict[str, Any]]) -> "StyleResult":
        """Of a run with these lines, at least one."""
        return cls(
            iterations=history[-1]["step"],
            seconds=sum(row["seconds"] for row in history),
            step_ms=statistics.median(row["step_ms"] for row in history[1:] or history),
            **{name: history[-1][name] for name in LOSSES},
        )


def build(recipe: StyleRecipe) -> tuple[models.StyleExchange, Discriminators]:
    """Generators and discriminators with their initial weights, on the CPU; CommandError for a preset that is none."""
    seed_generators(recipe.seed)
    try:
        network = models.style_exchange(
            recipe.preset,
            width=recipe.width,
            blocks=recipe.blocks,
            published_style_code=recipe.published_style_code,
        )
    except ValueError as error:
        raise CommandError(f"style_exchange cannot be built: {error}") from error
    return network, Discriminators(recipe.discriminator_channels)


def train(
    recipe: StyleRecipe,
    out: Path,
    *,
    data: Path | None = None,
    device: str | None = None,
    resume: bool = False,
    quiet: bool = False,
    time_limit: float | None = None,
    cadence: Cadence | None = None,
    graph: bool = True,
) -> StyleResult | None:
    """Train a recipe and return its result, also written to ``run.json`` in the folder ``out``.

    data: where pictures are looked for, see ``matroot.train.data``.
    device: ``"cuda"`` or ``"cpu"``; None is CUDA where there is one.
    resume: go on from the last checkpoint that ``out`` has, to the result of a run that never stopped: the same bits
        on a CPU. A finished run returns its result.
    time_limit: seconds of this call; no step is begun that would end later, on a GPU, which runs behind, no line of
        ``metrics.jsonl``. The run is saved, None is returned, and a later call resumes.
    cadence: None: as :class:`Cadence` has it.
    graph: replay steps from a CUDA graph where that is possible.

    The folder gets lines of ``metrics.jsonl`` and, at every sample, ``last.pt``, ``last.safetensors`` and a sheet in
    ``samples/``; Ctrl-C or a crash lose what came after. CommandError for a folder that has a run already and
    ``resume`` is not given, or in which another process trains, a checkpoint of another recipe or a damaged one, and
    for what recipe and data say. NonFiniteError where a loss is not finite.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    check(recipe)
    folder = RunFolder(Path(out), recipe, StyleResult)
    ranks = distributed.start(device)
    try:
        if ranks.world > 1:
            raise CommandError("style exchange trains in one process; start it without torchrun")
        with Interruption() as interruption, convolutions(), folder.locked():
            if not resume:
                folder.require_new()
            elif (finished := folder.result()) is not None:
                return finished
            networks = build(recipe)
            pictures = open_pictures(recipe.dataset, recipe.image_size, data, ranks.device)
            with Reporter(recipe.iterations, 1, quiet) as reporter:
                run = _Run(recipe, networks, pictures, folder, reporter, ranks.device, interruption, graph)
                return run.steps(resume, deadline, cadence or Cadence())
    finally:
        distributed.stop(ranks)


class _Run:
    """The steps of a run, and its files."""

    def __init__(
        self,
        recipe: StyleRecipe,
        networks: tuple[models.StyleExchange, Discriminators],
        pictures: Pictures,
        folder: RunFolder[StyleResult],
        reporter: Reporter,
        device: torch.device,
        interruption: Interruption,
        graph: bool,
    ) -> None:
        self._recipe, self._pictures, self._folder = recipe, pictures, folder
        self._reporter, self._interruption = reporter, interruption
        for network in networks:
            network.to(device)
            if recipe.channels_last:
                to_channels_last(network)
        self._step = self._new_step(networks, device, graph)
        self._history: list[dict[str, Any]] = []
        self._saved = 0
        """Steps of the last checkpoint."""
        parameters = sum(parameter.numel() for parameter in networks[0].parameters())
        photos, paintings = (len(domain.train) for domain in (pictures.photos, pictures.paintings))
        reporter.say(f"{parameters:,} parameters of the generators on {device}")
        reporter.say(f"{counted(photos, 'photo')} and {counted(paintings, 'painting')} of {pictures.source}")

    def steps(self, resume: bool, deadline: float | None, cadence: Cadence) -> StyleResult | None:
        """Train from where the folder stands; None where the deadline ends it first."""
        if resume:
            self._resume()
        self._folder.describe(None)
        self._folder.write_metrics(self._history)
        clock, is_over = _Clock(deadline), False
        try:
            while self._done < self._recipe.iterations and not is_over:
                # Lines end at multiples of their length, whatever a call before this one had.
                end = (self._done // cadence.report + 1) * cadence.report
                is_over = self._line(min(end, self._recipe.iterations), clock)
                if self._done - self._saved >= cadence.sample or self._done == self._recipe.iterations:
                    self._save()
                    is_over = clock.is_over_after("save")
        except KeyboardInterrupt:
            self._reporter.say(f"stopped; --resume goes on after step {self._saved} with {self._folder.path}")
            raise
        if self._saved < self._done:
            self._save()
        if self._done < self._recipe.iterations:
            self._reporter.say(f"out of time after step {self._done}; --resume goes on with {self._folder.path}")
            return None
        result = StyleResult.of(self._history)
        self._folder.describe(result)
        return result

    @property
    def _done(self) -> int:
        return self._history[-1]["step"] if self._history else 0

    def _new_step(
        self, networks: tuple[models.StyleExchange, Discriminators], device: torch.device, graph: bool
    ) -> Step:
        if not graph or device.type != "cuda":
            return Step(*networks, self._recipe)
        if (reason := why_roots_not_captured(networks[0])) is not None:
            self._reporter.say(f"steps are not captured in a CUDA graph: {reason}")
            return Step(*networks, self._recipe)
        return GraphStep(*networks, self._recipe)

    def _resume(self) -> None:
        found = self._folder.load()
        if found is None:
            self._reporter.say(f"{self._folder.path} has no checkpoint yet: the run starts with step 1")
            return
        self._step.load_state(found.network, found.optimizer)
        self._history = found.history
        self._saved = self._done
        self._reporter.resume(self._done)
        self._reporter.say(f"resumed after step {self._done} of {self._recipe.iterations}")

    def _line(self, end: int, clock: "_Clock") -> bool:
        """Train to step ``end``, and write the means of what it takes; whether the time is over, on a CPU before that.

        A line that was begun by a call before this one, and has sums for that, is gone on with.
        """
        recipe, first, start = self._recipe, self._done, time.perf_counter()
        begun = self._history[-1] if self._history and "sums" in self._history[-1] else None
        before = self._history if begun is None else self._history[:-1]
        begin, done, is_over = before[-1]["step"] if before else 0, first, False
        device = self._pictures.photos.train.device
        total, lr = torch.zeros(len(LOSSES), device=device), recipe.lr
        if begun is not None:
            total += torch.tensor(begun["sums"], device=device)
            start -= begun["seconds"]
        for k in range(first, end):
            lr = learning_rate(recipe, k)
            photos, paintings = (
                batch(domain.train, recipe.seed, number, k, recipe.batch_size)
                for domain, number in ((self._pictures.photos, PHOTOS), (self._pictures.paintings, PAINTINGS))
            )
            total += self._step(photos, paintings, lr)
            done = k + 1
            if device.type == "cpu" and (is_over := clock.is_over_after("step")):
                break
        means = dict(zip(LOSSES, (total / (done - begin)).tolist(), strict=True))
        if device.type != "cpu":
            is_over = clock.is_over_after("line")
        for name, value in means.items():
            if not math.isfinite(value):
                raise NonFiniteError(
                    f"training stopped between steps {first + 1} and {done}: the {name} loss is not finite. "
                    f"The checkpoint is that of step {self._saved}. A smaller lr or precision float32 may help"
                )
        seconds = time.perf_counter() - start
        row = {"step": done, "lr": lr, **means, "seconds": seconds, "step_ms": 1e3 * seconds / (done - begin)}
        if done < end:
            row["sums"] = total.tolist()
        self._history = [*before, row]
        self._folder.write_metrics(self._history)
        text = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
        self._reporter.advance(f"step {done}/{recipe.iterations}", done - first)
        self._reporter.say(f"step {done}/{recipe.iterations}  {text}  {row['step_ms']:.0f} ms")
        return is_over

    def _save(self) -> None:
        """Checkpoint, weights and sheet."""
        step = self._step
        sheet = sample_sheet(step.network, self._pictures)
        state = {**step.state(), "average": None, "scaler": None}
        with self._interruption.deferred():
            path = self._folder.path / SAMPLES / f"step-{self._done:06d}.png"
            try:
                path.parent.mkdir(exist_ok=True)
                write_whole(path, sheet)
            except OSError as error:
                raise CommandError(f"cannot write {path}: {error.strerror}") from error
            models.save(step.network, self._folder.path / WEIGHTS)
            self._folder.save(self._history, state)
            self._saved = self._done


class _Clock:
    """Whether there is time for another step and a save after it, from the longest so far.

    deadline: in seconds of ``time.monotonic``; None: there always is.
    """

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._now = time.monotonic()
        self._longest: dict[str, float] = {}

    def is_over_after(self, work: str) -> bool:
        """Take note of the time since the last call, which this kind of work took."""
        now = time.monotonic()
        self._longest[work] = max(now - self._now, self._longest.get(work, 0.0))
        self._now = now
        return self._deadline is not None and now + sum(self._longest.values()) > self._deadline
