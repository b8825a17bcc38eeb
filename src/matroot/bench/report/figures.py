"""Figures: one plot per file, side by side with the same axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..formatting import number
from .plots import Axis, Point, Series, axis_range, plot
from .results import Results
from .series import MakeSeries


@dataclass(frozen=True)
class Figure:
    """What is plotted of a suite; ``series`` makes the series of one file from its cases."""

    title: str
    x: Axis
    y: Axis
    series: MakeSeries


def draw(figure: Figure, suite: str, files: Sequence[Results], ident: str) -> str:
    """The figure as HTML, one plot per file that has series; empty where no file has a point that can be drawn."""
    series = [figure.series(one.suite(suite)) for one in files]
    points = [point for found in series for one in found for point in one.points]
    drawable = {point for point in points if _is_drawable(figure, point)}
    x_range = axis_range((x for x, _ in drawable), figure.x)
    y_range = axis_range((y for _, y in drawable), figure.y)
    if x_range is None or y_range is None:
        return ""
    plots = []
    for k, (one, found) in enumerate(zip(files, series, strict=True)):
        if found:
            title = f"{figure.title}. {one.name}"
            omitted = _omitted(figure, found)
            description = f"{figure.y.label} against {figure.x.label}; {'; '.join(map(_described, found))}.{omitted}"
            svg = plot(f"{ident}-{k}", title, description, figure.x, figure.y, found, (x_range, y_range))
            plots.append(f"<figure><figcaption>{escape(title)}.{omitted}</figcaption>{svg}</figure>")
    return "".join(plots)


def _is_drawable(figure: Figure, point: Point) -> bool:
    return figure.x.shows(point[0]) and figure.y.shows(point[1])


def _omitted(figure: Figure, series: Sequence[Series]) -> str:
    count = sum(not _is_drawable(figure, point) for one in series for point in one.points)
    return f" {count} points at zero are not drawn." if count else ""


def _described(series: Series) -> str:
    """For those who cannot see the plot."""
    ys = [y for _, y in series.points]
    if not ys:
        return f"{series.name}: none"
    return f"{series.name}: {len(ys)} points from {number(min(ys))} to {number(max(ys))}"
