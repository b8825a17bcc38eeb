"""Figures of a comparison: learning curves, and the time of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..._page.drawing import COLOURS, PAGE, drawing, to_svg
from ..._registry import presets
from .plan import BASELINE, DEFAULT
from .results import Comparison
from .summary import Summary, milliseconds

ORDER = (DEFAULT, BASELINE, *presets())
"""A preset has the same colour and dashes in every figure."""
DASHES = ("", "6 3", "2 2")
SIZE = (5.9, 4.2)
"""Inches, each 72 pixels of the page before it is fitted to the screen."""


@dataclass(frozen=True)
class Line:
    """Test accuracy of a preset, in percent, over its runs; by epochs that any of them has."""

    preset: str
    epochs: tuple[int, ...]
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]


def lines(comparison: Comparison) -> list[Line]:
    """A line for each preset with an epoch."""
    found = []
    for preset in comparison.presets:
        values: dict[int, list[float]] = {}
        for run in comparison.of(preset):
            for epoch, accuracy in zip(run.curve.epoch, run.curve.test_accuracy, strict=True):
                if accuracy is not None:
                    values.setdefault(epoch, []).append(100 * accuracy)
        if values:
            epochs = tuple(sorted(values))
            columns = [values[epoch] for epoch in epochs]
            means = tuple(sum(column) / len(column) for column in columns)
            found.append(Line(preset, epochs, means, tuple(map(min, columns)), tuple(map(max, columns))))
    return found


def style(preset: str) -> int:
    """The number of a preset's colour and dashes; others than those of the library share the last."""
    return ORDER.index(preset) if preset in ORDER else len(ORDER)


def dashes(preset: str) -> str:
    """As ``stroke-dasharray`` has them; nothing for a solid line."""
    return DASHES[style(preset) // COLOURS % len(DASHES)]


def curves(ident: str, found: Sequence[Line], epochs: int, last_third: bool = False) -> str:
    """Test accuracy against epoch: means as lines, least to greatest of the runs as bands; empty without a line.

    The last third is left out where it is one epoch, of which the table says as much.
    """
    first = 2 * epochs // 3 if last_third else 0
    if last_third and epochs - first < 2:
        return ""
    found = [part for line in found if (part := _from(line, first)).epochs]
    if not found:
        return ""
    with drawing(PAGE, "training"):
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(SIZE, layout="constrained")
        axes = figure.add_subplot()
        for line in found:
            dash = tuple(map(float, dashes(line.preset).split()))
            axes.fill_between(
                line.epochs, line.lows, line.highs, color=PAGE.colour(style(line.preset)), alpha=0.15, lw=0
            )
            axes.plot(
                line.epochs,
                line.means,
                color=PAGE.colour(style(line.preset)),
                linewidth=1.7,
                linestyle=(0, dash) if dash else "-",
                marker="o" if len(line.epochs) == 1 else None,
                markersize=4,
            )
        axes.set_xlabel("epoch")
        axes.set_ylabel("test accuracy, %")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        described = "; ".join(f"{line.preset}: {line.means[0]:.2f} to {line.means[-1]:.2f}" for line in found)
        title = f"Test accuracy against epoch{', the last third' if last_third else ''}"
        return to_svg(figure, ident, title, f"Percent, first to last epoch shown, mean of the runs: {described}.")


def bars(ident: str, summary: Summary) -> str:
    """Milliseconds of a step as bars, the root's share in the colour of the preset; empty without a time."""
    rows = [row for row in summary.rows if row.step is not None]
    if not rows:
        return ""
    with drawing(PAGE, "training"):
        from matplotlib.figure import Figure

        figure = Figure((SIZE[0], max(2.0, 0.9 + 0.31 * len(rows))), layout="constrained")
        axes = figure.add_subplot()
        texts = []
        for k, row in enumerate(rows):
            assert row.step is not None
            total, share = row.step.median, max(0.0, row.step.root_share or 0.0)
            axes.barh(k, total * (1 - share), height=0.62, color=PAGE.rule)
            axes.barh(k, total * share, left=total * (1 - share), height=0.62, color=PAGE.colour(style(row.preset)))
            axes.plot((row.step.low, row.step.high), (k, k), color=PAGE.ink, linewidth=1)
            root = "" if row.step.root_percent is None else f", {row.step.root_percent} % root"
            text = f"{milliseconds(total)}{root}"
            axes.annotate(text, (max(total, row.step.high), k), (4, 0), textcoords="offset points", va="center")
            texts.append(f"{row.preset}: {text}")
        axes.set_yticks(range(len(rows)), [row.preset for row in rows], parse_math=False)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlabel("milliseconds of a step")
        # Room for the text after the longest bar.
        axes.set_xlim(0, 1.7 * max(row.step.high for row in rows if row.step is not None))
        return to_svg(figure, ident, "Time of a training step and the root's share of it", "; ".join(texts) + ".")


def _from(line: Line, first: int) -> Line:
    kept = [k for k, epoch in enumerate(line.epochs) if epoch > first]
    return Line(
        line.preset,
        tuple(line.epochs[k] for k in kept),
        tuple(line.means[k] for k in kept),
        tuple(line.lows[k] for k in kept),
        tuple(line.highs[k] for k in kept),
    )
