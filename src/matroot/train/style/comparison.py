"""``matroot compare style``: times of transforms and scores of runs beside the paper's; result file and table."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..._environment import environment
from ..._files import write_whole
from ..._terminal import CommandError
from ...models.lpips import load_lpips
from .. import distributed
from ..compare.results import StepTime
from ..compare.summary import MISSING, milliseconds
from ..config import counted
from ..seeding import convolutions
from .scoring import Score, score_run
from .transform_timing import COUNT, Shape, TransformTimes, time_transforms

FORMAT = "matroot-compare-style 1"
HEADS = ("preset", f"{COUNT} transforms ms", "their roots ms", "paper's ms", "LPIPS", "paper's LPIPS")


@dataclass(frozen=True)
class Published:
    """A row of the paper's table of style transfer."""

    lpips: float
    milliseconds: float
    """Of ten transforms of 4 x 256 x 256, forward and backward."""


PUBLISHED = {
    "svd-taylor": Published(0.5276, 447),
    "svd-pade": Published(0.5422, 445),
    "ns": Published(0.5578, 94),
    "mpa-lya": Published(0.5615, 69),
    "mtp-lya": Published(0.5489, 41),
}


@dataclass(frozen=True)
class StyleRequest:
    """What is measured."""

    presets: tuple[str, ...]
    """Timed; none are where this is empty."""
    runs: tuple[Path, ...]
    """Folders of ``matroot train style`` to score."""
    out: Path
    """Result file."""
    command: str
    lpips_weights: Path | None = None
    data: Path | None = None
    device: str | None = None
    shape: Shape | None = None
    """Of the features; None: as published."""


@dataclass(frozen=True)
class StyleComparison:
    """A result file."""

    command: str
    environment: dict[str, Any]
    timing: TransformTimes | None
    scores: tuple[Score, ...]


def compare_style(request: StyleRequest, console: Console) -> int:
    """Score the runs, time the presets, print the table and write the result file; returns the exit status, 0.

    CommandError, before anything is timed, for runs without the weights of LPIPS, for what they say, and for a folder
    that cannot be made.
    """
    if request.runs and request.lpips_weights is None:
        raise CommandError("--runs are scored by LPIPS: --weights-lpips names the file of its weights")
    _make_folder(request.out)
    device = distributed.start(request.device).device
    scores: list[Score] = []
    with convolutions():
        if request.lpips_weights is not None:
            metric = load_lpips(request.lpips_weights)
            scores = [score_run(folder, metric, request.data, device) for folder in request.runs]
        timing = None
        if request.presets:
            presets = counted(len(request.presets), "preset")
            console.print(f"timing {COUNT} transforms of {presets} ...", highlight=False)
            timing = time_transforms(request.presets, device, request.shape)
    comparison = StyleComparison(request.command, environment(), timing, tuple(scores))
    show(comparison, console)
    _write(request.out, comparison)
    console.print(str(request.out), highlight=False, soft_wrap=True)
    return 0


def show(comparison: StyleComparison, console: Console) -> None:
    """Print a row a preset, and what has to be said beside them."""
    title = "Style exchange: transforms and scores"
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for k, head in enumerate(HEADS):
        table.add_column(head.replace(" ", "\n", 1), justify="right" if k else "left", no_wrap=True)
    for row in rows(comparison):
        table.add_row(*map(escape, row))
    console.print(table)
    for note in notes(comparison):
        console.print(note, markup=False, highlight=False)


def rows(comparison: StyleComparison) -> list[tuple[str, ...]]:
    """Cells as ``HEADS`` names them: presets that were timed, then those of runs alone."""
    timing = comparison.timing
    timed, roots = (timing.transforms, timing.roots) if timing else ({}, {})
    presets = dict.fromkeys((*timed, *(score.preset for score in comparison.scores)))
    found = []
    for preset in presets:
        paper = PUBLISHED.get(preset)
        scores = [score.lpips for score in comparison.scores if score.preset == preset]
        found.append(
            (
                preset,
                _time(timed.get(preset)),
                _time(roots.get(preset)),
                MISSING if paper is None else f"{paper.milliseconds:.0f}",
                ", ".join(f"{score:.4f}" for score in scores) or MISSING,
                MISSING if paper is None else f"{paper.lpips:.4f}",
            )
        )
    return found


def notes(comparison: StyleComparison) -> list[str]:
    """What has to be said beside the figures."""
    found = []
    timing = comparison.timing
    if timing is not None:
        found.append(f"Times are of forward and backward passes of {timing.shape}, on {timing.device}.")
        eager = [preset for preset, time in timing.transforms.items() if time.mode == "eager"]
        if 0 < len(eager) < len(timing.transforms):
            found.append(f"Replayed from a CUDA graph, but for {', '.join(eager)}, which cannot be captured.")
        found += [f"{preset} was not timed: {why}" for preset, why in timing.failures.items()]
    found.append("The paper's figures are of its own machine and of full training runs on CycleGAN's data sets.")
    found += [_note(score) for score in comparison.scores]
    if comparison.scores:
        found.append("LPIPS is how far painted photos are from the photos, not how good they are.")
    return found


def _note(score: Score) -> str:
    photos = counted(score.photos, "test photo")
    return (
        f"{score.run}: {score.lpips:.4f} \u00b1 {score.std:.4f} over {photos} of {score.dataset}, "
        f"{score.image_size} pixels, after {counted(score.steps, 'step')}."
    )


def _time(time: StepTime | None) -> str:
    return MISSING if time is None else milliseconds(time.median)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _write(path: Path, comparison: StyleComparison) -> None:
    content = {
        "format": FORMAT,
        **asdict(comparison),
        "published": {preset: asdict(one) for preset, one in PUBLISHED.items()},
    }
    try:
        write_whole(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> CommandError:
    return CommandError(f"cannot write {path}: {error.strerror or error}")
