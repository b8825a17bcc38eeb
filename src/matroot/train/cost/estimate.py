"""Hours and cost of the large recipes: arithmetic on measured steps."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._terminal import CommandError
from ..markdown import table
from .jobs import JOBS, PRESETS, Job

FORMAT = "matroot-steps 1"
MS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class Step:
    """Milliseconds of a training step on one GPU; ``graph`` is None where a CUDA graph was not possible."""

    model: str
    preset: str
    batch: int
    eager: float
    graph: float | None


@dataclass(frozen=True)
class Estimate:
    """What a job costs with one preset."""

    job: Job
    preset: str
    gpus: int
    step_ms: float
    """Of a step of all GPUs together."""

    @property
    def hours(self) -> float:
        return self.job.steps * self.job.settings.epochs * self.step_ms / MS_PER_HOUR

    @property
    def gpu_hours(self) -> float:
        return self.hours * self.gpus


def read_steps(path: Path) -> list[Step]:
    """The steps of a file of ``python -m matroot.train.cost``; CommandError if it is not one."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise CommandError(f"{path} has format {found!r}; {FORMAT!r} was expected, which --out writes")
    try:
        return [_step(result) for result in content["results"]]
    except (KeyError, TypeError) as error:
        raise CommandError(f"{path} is damaged: a result lacks {error}") from error


def _step(result: dict[str, Any]) -> Step:
    graph = result["graph_ms"]
    return Step(
        result["model"], result["preset"], result["batch"], result["eager_ms"]["median"], graph and graph["median"]
    )


def estimates(steps: Sequence[Step], available: int) -> list[Estimate]:
    """Of every job and preset that the steps suffice for, on as many of the available GPUs as are of use.

    Several processes take eager steps. A GPU whose part of a step is larger than any measured batch needs as long for
    an example as with that batch.
    """
    measured = {(step.model, step.preset, step.batch): step.eager for step in steps}
    found = []
    for job in JOBS:
        gpus = job.gpus(available)
        batch, part = job.measured_batch(gpus), job.settings.batch_size // gpus
        for preset in PRESETS:
            if (key := (job.settings.model, preset, batch)) in measured:
                found.append(Estimate(job, preset, gpus, measured[key] * part / batch))
    return found


def steps_table(steps: Sequence[Step]) -> str:
    """The measured steps, as markdown."""
    rows = []
    for s in steps:
        graph = "-" if s.graph is None else f"{s.graph:.1f}"
        rows.append((s.model, str(s.batch), s.preset, f"{s.eager:.1f}", graph, f"{1000 * s.batch / s.eager:,.0f}"))
    return table(("network", "batch", "preset", "eager, ms", "graph, ms", "examples/s, eager"), rows)


def estimates_table(found: Sequence[Estimate], price: float) -> str:
    """Hours and cost, as markdown; ``price`` is that of a GPU-hour."""
    head = ("recipe", "network", "preset", "steps", "GPUs", "ms/step", "hours", "GPU-hours", "cost")
    rows = []
    for e in found:
        name = f"{e.job.recipe}, {e.job.title}"
        steps = f"{e.job.steps:,} x {e.job.settings.epochs}"
        hours = tuple(_hours(h) for h in (e.hours, e.gpu_hours))
        cost = f"${e.gpu_hours * price:,.{0 if e.gpu_hours * price >= 10 else 2}f}"
        rows.append((name, e.job.settings.model, e.preset, steps, str(e.gpus), f"{e.step_ms:.1f}", *hours, cost))
    return table(head, rows)


def _hours(hours: float) -> str:
    return f"{hours:,.{0 if hours >= 100 else 1 if hours >= 1 else 2}f}"
