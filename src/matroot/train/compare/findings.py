"""What a comparison shows, in sentences made from its figures."""

from math import sqrt

from ..config import counted
from .plan import BASELINE, DEFAULT
from .results import Comparison
from .summary import Row, Spread, Summary, milliseconds

PAPERS = "mpa-lya"
"""The paper's own method."""


def findings(comparison: Comparison, summary: Summary) -> list[str]:
    """Accuracy, then time; nothing where figures are missing."""
    default, paper, baseline = (summary.row(preset) for preset in (DEFAULT, PAPERS, BASELINE))
    found = [_best(summary)]
    if default and paper:
        found.append(_difference(default, paper, summary))
    if default and baseline:
        found.append(_difference(default, baseline, summary))
    found += [_fastest(summary), _share(default, paper), _unfinished(comparison)]
    return [sentence for sentence in found if sentence]


def _best(summary: Summary) -> str:
    rows = [(row.preset, row.best) for row in summary.rows if row.best is not None]
    if len(rows) < 2:
        return ""
    rows.sort(key=lambda pair: pair[1].mean, reverse=summary.measure == "accuracy")
    (first, best), (last, worst) = rows[0], rows[-1]
    word = "Lowest" if summary.measure == "error" else "Highest"
    return (
        f"{word} {summary.measure} of the best epoch: {first} with {best} %; {last} is at the other end with {worst} %."
    )


def _difference(one: Row, other: Row, summary: Summary) -> str:
    """Of two presets, next to what the spread over seeds lets one see."""
    a, b = one.best, other.best
    if a is None or b is None:
        return ""
    gap = abs(a.mean - b.mean)
    better = (a.mean < b.mean) == (summary.measure == "error")
    word = f"{'better' if better else 'worse'} than" if gap >= 0.005 else "different from"
    text = f"{one.preset} is {gap:.2f} points {word} {other.preset} ({a} and {b} %)"
    noise = _standard_error(a, b)
    if noise is None:
        return f"{text}; a single run does not say whether that is noise."
    return f"{text}, {'within' if gap <= 2 * noise else 'more than'} two standard errors of the difference."


def _standard_error(a: Spread, b: Spread) -> float | None:
    if a.std is None or b.std is None:
        return None
    return sqrt(a.std**2 / a.runs + b.std**2 / b.runs)


def _fastest(summary: Summary) -> str:
    timed = [(row.step.median, row) for row in summary.rows if row.step is not None and row.preset != BASELINE]
    if not timed:
        return ""
    (least, first), (most, last) = min(timed, key=lambda pair: pair[0]), max(timed, key=lambda pair: pair[0])
    over = "" if first.ratio is None else f", {first.ratio:.2f} times the network without roots"
    if first is last:
        return f"A step takes {milliseconds(least)} ms with {first.preset}{over}."
    return (
        f"Fastest with a root: {first.preset}, {milliseconds(least)} ms a step{over}; "
        f"slowest: {last.preset}, {milliseconds(most)} ms."
    )


def _share(*rows: Row | None) -> str:
    shares = [
        f"{row.step.root_percent} % with {row.preset}"
        for row in rows
        if row is not None and row.step is not None and row.step.root_percent is not None
    ]
    return f"Of a step, root and gradient take {' and '.join(shares)}." if shares else ""


def _unfinished(comparison: Comparison) -> str:
    failed = sum(run.failure is not None for run in comparison.runs)
    unfinished = sum(run.result is None for run in comparison.runs) - failed
    parts = [f"{failed} failed"] * bool(failed) + [f"{unfinished} not finished"] * bool(unfinished)
    return f"Of {counted(len(comparison.runs), 'run')} {' and '.join(parts)}." if parts else ""
