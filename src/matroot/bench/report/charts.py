"""Charts drawn by matplotlib: lines over an axis, marks in rows, and bars in groups.

Sizes are pixels of the page, which are points on paper. Margins are set by hand: fitting them to the text takes longer
than all the drawing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..._page.drawing import COLOURS, Palette
from ..formatting import SUPERSCRIPTS, mantissa_and_exponent, number, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 420.0, 270.0
"""Of a chart of lines, without its legend."""
LEFT, RIGHT, TOP, BOTTOM = 62.0, 20.0, 10.0, 44.0
LETTER, ROW, LEGEND_ROW, TICK = 7.0, 15.5, 17.0, 45.0
"""Letters are about so wide; rows of bars and of the legend so high; labels of ticks need so much room."""
MARKERS, DASHES = ("o", "s", "^", "D", "v"), ("-", (0, (6, 3)), (0, (2, 3)))
MAX_LETTERS = 34
GREY = -1
"""The style of what stands back."""

Point = tuple[float, float]
Range = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """The label of an axis, logarithmic unless said otherwise."""

    label: str
    log: bool = True

    def shows(self, value: float) -> bool:
        """Whether the axis can show a number: logarithmic ones need positive numbers that do not underflow."""
        return not self.log or value > 1e-200


@dataclass(frozen=True)
class Series:
    """A named line; ``style`` picks colour, marker and dashes, so that a contestant looks the same in every chart.

    ``label`` stands in the legend, once for all series that have it.
    """

    name: str
    points: Sequence[Point]
    style: int
    marked: bool = True
    joined: bool = True
    label: str = ""


@dataclass(frozen=True)
class Bar:
    """A row of a group: one number is a bar, two are a full and an empty mark; None: not measured, NaN: no number."""

    name: str
    numbers: tuple[float | None, ...]
    style: int
    partial: bool = False
    """Whether it does less of the work than the others; it is drawn pale."""


@dataclass(frozen=True)
class Group:
    title: str
    bars: tuple[Bar, ...]


def axis_range(values: Iterable[float], axis: Axis) -> Range | None:
    """Ends of an axis that shows some numbers; None if it shows none of them."""
    shown = [x for x in values if axis.shows(x)]
    if not shown:
        return None
    low, high = min(shown), max(shown)
    if axis.log:
        low, high = math.log10(low), math.log10(high)
        margin = 0.04 * (high - low) or 0.5
        return 10 ** (low - margin), 10 ** (high + margin)
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
    return low - margin, high + margin


def line_chart(
    palette: Palette, x: Axis, y: Axis, series: Sequence[Series], ranges: tuple[Range, Range], rows: Sequence[str] = ()
) -> "Figure":
    """Series over two axes; with ``rows`` the y of a point is the index of a row, the first on top."""
    legend = _legend_entries(series)
    columns = max(1, min(4, int((WIDTH - 10) // (42 + LETTER * max(map(len, legend), default=1)))))
    below = LEGEND_ROW * math.ceil(len(legend) / columns) + 4 if legend else 0.0
    left = LETTER * max(len(letters(row)) for row in rows) + 12 if rows else LEFT
    body = TOP + BOTTOM + (ROW + 4) * len(rows) if rows else HEIGHT
    left = min(left, 0.6 * WIDTH)
    figure, axes = _axes(WIDTH, body + below, left, BOTTOM + below)
    _ruler(axes, "x", x, ranges[0], most=min(6, int((WIDTH - left - RIGHT) // TICK)))
    if rows:
        _rows(axes, rows)
    else:
        _ruler(axes, "y", y, ranges[1])
    # The default is drawn last, above the others.
    for one in sorted(series, key=lambda one: (one.style != GREY, one.style == 0)):
        points = [(a, b) for a, b in one.points if x.shows(a) and (rows or y.shows(b))]
        axes.plot(*(zip(*points, strict=True) if points else ([], [])), **_look(palette, one, len(points)))
    if not legend:
        return figure
    handles = [axes.plot([], [], **_look(palette, one, 1 + one.joined))[0] for one in legend.values()]
    figure.legend(
        handles,
        list(legend),
        loc="lower left",
        bbox_to_anchor=(0, 0),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.8,
        columnspacing=1.2,
        labelspacing=0.35,
    )
    return figure


def letters(text: str) -> str:
    """Text from a file as a chart can show it: not without end, and without halves of characters."""
    cut = text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"
    return cut.encode("utf-8", "replace").decode("utf-8")


def _legend_entries(series: Sequence[Series]) -> dict[str, Series]:
    """By label; none where there is nothing to tell apart."""
    entries: dict[str, Series] = {}
    for one in series:
        entries.setdefault(letters(one.label or one.name), one)
    return entries if len(entries) > 1 else {}


def _look(palette: Palette, series: Series, points: int) -> dict[str, Any]:
    """Shapes and dashes differ as colours do, for those who do not see the colours."""
    back = series.style == GREY
    colour = palette.faint if back else palette.colour(series.style)
    return {
        "color": colour,
        "linewidth": 0.8 if back else 2.2 if series.style == 0 else 1.5,
        "linestyle": DASHES[0 if back else series.style // COLOURS % len(DASHES)] if series.joined else "none",
        "marker": MARKERS[series.style % len(MARKERS)] if series.marked or points == 1 else "none",
        "markersize": 2.5 if back else (5.5 if series.joined else 7.0) + (series.style == 0),
        "markeredgecolor": palette.back,
        "markeredgewidth": 0.0 if back else 0.6,
        "alpha": 0.6 if back else 1.0,
    }


def bar_chart(palette: Palette, x: Axis, ends: Range, groups: Sequence[Group], width: float = 360.0) -> "Figure":
    """Groups of rows, one below the other: bars with their numbers, or pairs of marks."""
    names = [bar.name for group in groups for bar in group.bars]
    height = TOP + BOTTOM + sum(ROW * (len(group.bars) + 1.35) for group in groups)
    left = min(LETTER * max(map(len, names)) + 8, 0.5 * width)
    figure, axes = _axes(width, height, left, BOTTOM)
    _ruler(axes, "x", x, ends, most=4)
    at, places = 0.0, []
    for group in groups:
        # The title starts at the left edge, above its bars.
        axes.text(
            -left / (width - left - RIGHT),
            at + 0.25,
            group.title,
            transform=axes.get_yaxis_transform(),
            weight="bold",
            va="center",
        )
        at += 1.1
        for bar in group.bars:
            places.append(at)
            (_bar if len(bar.numbers) == 1 else _marks)(axes, palette, at, bar, x, ends)
            at += 1
        at += 0.25
    axes.set_yticks(places, names)
    axes.set_ylim(at - 0.4, -0.4)
    _plain_rows(axes)
    axes.grid(visible=False, axis="y")
    return figure


def _bar(axes: "Axes", palette: Palette, at: float, bar: Bar, x: Axis, ends: Range) -> None:
    (value,) = bar.numbers
    if value is None or not x.shows(value):
        _instead(axes, palette, at, ends, value)
        return
    colour = palette.colour(bar.style)
    axes.barh(at, value - ends[0], left=ends[0], height=0.74, color=colour, alpha=0.45 if bar.partial else 1.0, lw=0)
    weight = "bold" if bar.style == 0 else "normal"
    axes.annotate(number(value), (value, at), (4, 0), textcoords="offset points", va="center", weight=weight)


def _marks(axes: "Axes", palette: Palette, at: float, bar: Bar, x: Axis, ends: Range) -> None:
    measured = [(value, full) for value, full in zip(bar.numbers, (True, False), strict=True) if value is not None]
    shown = [(value, full) for value, full in measured if x.shows(value)]
    if not shown or any(math.isnan(value) for value, _ in measured):
        _instead(axes, palette, at, ends, min((value for value, _ in measured), key=math.isfinite, default=None))
        return
    colour = palette.colour(bar.style)
    axes.hlines(at, ends[0], max(value for value, _ in shown), color=colour, linewidth=0.8, alpha=0.5)
    for value, full in reversed(shown):  # where both are equal, a ring with a dot in it
        face, size = (colour, 5) if full else (palette.back, 8.5)
        axes.plot([value], [at], "o", color=colour, markerfacecolor=face, markersize=size, markeredgewidth=1.4)


def _instead(axes: "Axes", palette: Palette, at: float, ends: Range, value: float | None) -> None:
    """What has no place on the axis, as text."""
    text = number(value, missing="not measured")
    axes.annotate(text, (ends[0], at), (4, 0), textcoords="offset points", va="center", color=palette.faint)


def _axes(width: float, height: float, left: float, bottom: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure((width / 72, height / 72))
    box = (left / width, bottom / height, (width - left - RIGHT) / width, (height - bottom - TOP) / height)
    return figure, figure.add_axes(box)


def _rows(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [letters(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    _plain_rows(axes)


def _plain_rows(axes: "Axes") -> None:
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _ruler(axes: "Axes", which: Literal["x", "y"], axis: Axis, ends: Range, most: int = 6) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    scale = "log" if axis.log else "linear"
    if which == "x":
        ruler = axes.xaxis
        axes.set_xscale(scale)
        axes.set_xlim(*ends)
    else:
        ruler = axes.yaxis
        axes.set_yscale(scale)
        axes.set_ylim(*ends)
    ruler.set_major_locator(FixedLocator(ticks(axis, ends, most)))
    ruler.set_minor_locator(NullLocator())
    ruler.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    ruler.set_label_text(axis.label)
    ruler.set_tick_params(length=0)


def ticks(axis: Axis, ends: Range, most: int = 6) -> list[float]:
    """Round numbers along an axis: at most so many powers of ten, or 1, 2 and 5 times them where there are few."""
    low, high = ends
    if not axis.log:
        step = 10.0 ** math.floor(math.log10((high - low) / 4))
        step = next(step * k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 6)
        first = math.ceil(low / step - 1e-9)
        return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    low, high = math.log10(low), math.log10(high)
    powers = range(math.floor(low), math.ceil(high) + 1)
    decades = [10.0**k for k in powers if low <= k <= high]
    if len(decades) >= 3:
        return decades[:: math.ceil(len(decades) / most)]
    fine = [m * 10.0**k for k in powers for m in (1, 2, 5)]
    inside = [t for t in fine if low <= math.log10(t) <= high] or [10.0 ** ((low + high) / 2)]
    return inside[:: math.ceil(len(inside) / (most + 1))]


def tick_text(value: float) -> str:
    """The label of a tick, powers of ten raised."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return significant(value, 3)
    mantissa, exponent = mantissa_and_exponent(value)
    power = f"10{str(exponent).translate(SUPERSCRIPTS)}"
    return power if float(mantissa) == 1 else f"{float(mantissa):g}·{power}"
