"""Figures of a suite: one chart per file, side by side with the same axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..formatting import number
from .case import Case
from .charts import Axis, Point, Series, axis_range, line_chart
from .drawings import Drawing
from .results import Results
from .series import MakeSeries, row_names


@dataclass(frozen=True)
class Figure:
    """What is drawn of a suite; ``series`` makes the series of one file from its cases.

    With ``row``, which names the row of a case, the points lie in rows and y has no numbers.
    """

    title: str
    x: Axis
    y: Axis
    series: MakeSeries
    row: Callable[[Case], str] | None = None

    def is_drawable(self, point: Point) -> bool:
        return self.x.shows(point[0]) and (self.row is not None or self.y.shows(point[1]))


def drawings(figure: Figure, suite: str, files: Sequence[Results], name: str, said: Sequence[str]) -> list[Drawing]:
    """A chart of every file that has a point to draw; ``said`` are the findings of each file, for the description."""
    series = [figure.series(one.suite(suite)) for one in files]
    points = [point for found in series for one in found for point in one.points]
    drawable = [point for point in points if figure.is_drawable(point)]
    x_range = axis_range((x for x, _ in drawable), figure.x)
    y_range = axis_range((y for _, y in drawable), figure.y if figure.row is None else Axis("", log=False))
    if x_range is None or y_range is None:
        return []
    found = []
    for k, (one, own, words) in enumerate(zip(files, series, said, strict=True), 1):
        if not any(figure.is_drawable(point) for line in own for point in line.points):
            continue
        rows = row_names(one.suite(suite), figure.row) if figure.row else []
        omitted = _omitted(figure, own)
        described = "; ".join(_described(line, bool(rows)) for line in own)
        axes = figure.x.label if rows else f"{figure.y.label} against {figure.x.label}"
        found.append(
            Drawing(
                f"{name}-{k}",
                f"{figure.title}: {one.name}",
                f"{figure.title}: {one.name}.{omitted}",
                f"{words} {axes}; {described}.{omitted}".strip(),
                lambda palette, own=own, rows=rows: line_chart(
                    palette, figure.x, figure.y, own, (x_range, y_range), rows
                ),
            )
        )
    return found


def _omitted(figure: Figure, series: Sequence[Series]) -> str:
    count = sum(not figure.is_drawable(point) for one in series for point in one.points)
    return f" {count} points at zero are not drawn." if count else ""


def _described(series: Series, in_rows: bool) -> str:
    """For those who cannot see the chart."""
    numbers = [point[0 if in_rows else 1] for point in series.points]
    if not numbers:
        return f"{series.name}: none"
    return f"{series.name}: {len(numbers)} points from {number(min(numbers))} to {number(max(numbers))}"
