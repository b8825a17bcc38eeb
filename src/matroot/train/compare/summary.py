"""The table of a comparison: a row a preset, in the paper's own measure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from ..config import counted
from ..paper import Measure, Published, nearest_column
from ..recipes import RECIPES
from .plan import BASELINE, DEFAULT, shared_fields
from .results import Comparison, StepTime

MISSING = "-"
RATIOS = ("over baseline", "root %")


@dataclass(frozen=True)
class Spread:
    """Percent of several runs."""

    mean: float
    std: float | None
    """Of a sample, with n - 1 in its denominator; None for one run."""
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.std is None else f"{self.mean:.2f} \u00b1 {self.std:.2f}"


@dataclass(frozen=True)
class Row:
    """What is known of a preset."""

    preset: str
    best: Spread | None
    """Of the best epoch of every run."""
    final: Spread | None
    runs: int
    """Asked for; those that are finished are in the spreads."""
    paper: Published | None
    step: StepTime | None
    ratio: float | None
    """Time of a step over that of the network without roots."""


@dataclass(frozen=True)
class Summary:
    """The rows of a comparison and what their figures are."""

    measure: Measure
    paper_title: str
    """Network and data set of the paper's figures."""
    is_papers: bool
    """Whether network and data set are those."""
    rows: tuple[Row, ...]

    def row(self, preset: str) -> Row | None:
        """The row of a preset; None where it has none."""
        return next((row for row in self.rows if row.preset == preset), None)


def summarise(comparison: Comparison) -> Summary:
    """The rows in order: without roots, matroot's own choice, then the others as they were run."""
    model, dataset = comparison.recipe["model"], comparison.recipe["dataset"]
    column = nearest_column(comparison.name, model, dataset)
    steps = comparison.timing.steps if comparison.timing else {}
    presets = dict.fromkeys((*comparison.presets, *steps))
    order = [preset for preset in (BASELINE, DEFAULT) if preset in presets]
    order += [preset for preset in presets if preset not in order]
    rows = []
    for preset in order:
        runs = comparison.of(preset)
        results = [run.result for run in runs if run.result is not None]
        step, base = steps.get(preset), steps.get(BASELINE)
        rows.append(
            Row(
                preset,
                spread([result["best_accuracy"] for result in results], column.measure),
                spread([result["final_accuracy"] for result in results], column.measure),
                len(runs),
                column.cells.get(preset),
                step,
                step.median / base.median if step and base else None,
            )
        )
    is_papers = (column.model, column.dataset) == (model, dataset)
    return Summary(column.measure, column.title, is_papers, tuple(rows))


def title(comparison: Comparison) -> str:
    """Recipe, network and data."""
    recipe = comparison.recipe
    return (
        f"{comparison.name}, variant {comparison.variant}: {recipe['model']} on {recipe['dataset']}, "
        f"{counted(recipe['epochs'], 'epoch')}"
    )


def spread(accuracies: Sequence[float], measure: Measure) -> Spread | None:
    """Mean and standard deviation, in percent, of accuracies or of the errors they leave; None for none."""
    if not accuracies:
        return None
    values = [100 * (1 - a if measure == "error" else a) for a in accuracies]
    return Spread(mean(values), stdev(values) if len(values) > 1 else None, len(values))


def heads(summary: Summary) -> tuple[str, ...]:
    """Of the columns of ``cells``; the first word may stand on a line of its own."""
    measure = f"{summary.measure} %"
    return ("preset", f"best {measure}", f"final {measure}", "runs", f"paper's {measure}", "step ms", *RATIOS)


def cells(row: Row) -> tuple[str, ...]:
    """A row as text."""
    paper = MISSING
    if row.paper is not None:
        paper = f"{row.paper.value:.2f}" + (f" \u00b1 {row.paper.std:.2f}" if row.paper.std is not None else "")
    share = row.step.root_percent if row.step else None
    return (
        row.preset,
        MISSING if row.best is None else str(row.best),
        MISSING if row.final is None else str(row.final),
        f"{row.best.runs if row.best else 0}/{row.runs}" if row.runs else MISSING,
        paper,
        MISSING if row.step is None else milliseconds(row.step.median),
        MISSING if row.ratio is None else f"{row.ratio:.2f}",
        MISSING if share is None else share,
    )


def changed_fields(comparison: Comparison) -> dict[str, Any]:
    """Fields in which a recipe is not its variant's, besides data set and epochs, which the title has."""
    variant = RECIPES.get(comparison.name, {}).get(comparison.variant)
    own = {} if variant is None else shared_fields(variant)
    return {
        name: value
        for name, value in comparison.recipe.items()
        if name in own and value != own[name] and name not in ("dataset", "epochs")
    }


def milliseconds(value: float) -> str:
    """Three digits: ``0.94``, ``3.14``, ``31.4``, ``314``."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def notes(comparison: Comparison, summary: Summary) -> list[str]:
    """What has to be said beside the figures."""
    recipe = comparison.recipe
    found = [f"The paper's figures are of {summary.paper_title}."]
    if comparison.stand_in:
        found.append(comparison.stand_in)
    if not summary.is_papers:
        found.append(f"Ours are of {recipe['model']} on {recipe['dataset']}: another experiment, not to be compared.")
    changed = "".join(f", {name} {value}" for name, value in changed_fields(comparison).items())
    epochs = counted(recipe["epochs"], "epoch")
    found.append(f"These runs follow the variant {comparison.variant} with {epochs}{changed}.")
    unfinished = [f"{run.preset} with seed {run.seed}" for run in comparison.runs if run.result is run.failure is None]
    if unfinished:
        found.append(f"Not finished: {', '.join(unfinished)}.")
    found += [
        f"{run.preset}, seed {run.seed}, failed: {run.failure}" for run in comparison.runs if run.failure is not None
    ]
    if comparison.timing:
        eager = [preset for preset, step in comparison.timing.steps.items() if step.mode == "eager"]
        if 0 < len(eager) < len(comparison.timing.steps):
            found.append(
                f"Steps are replayed from a CUDA graph, but for {', '.join(eager)}, which cannot be captured. "
                "Operation by operation all of a step takes longer, so that its time over the baseline's is not the "
                "root's alone; and where it waits for the processor, the root's share of it may be zero."
            )
        found += [f"{preset} was not timed: {why}" for preset, why in comparison.timing.failures.items()]
    return found
