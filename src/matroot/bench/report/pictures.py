"""How cases are drawn: the lines of a plot, and the looks of contestants."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .claim import decomposition, find
from .plots import Axis, Series
from .results import Case

STYLES = {
    name: k
    for k, names in enumerate(
        (
            ("auto", "minimax+smith", "minimax"),
            ("eigh", "exact", "implicit"),
            ("mpa-lya", "pade", "lyapunov", "paper"),
            ("mtp-lya", "taylor"),
            ("ns", "newton-schulz", "newton-schulz unrolled", "unrolled"),
            ("eigh autograd", "smith"),
            ("matrix_sqrth", "minimax+krylov"),
            ("ns-lya", "ns converged"),
            ("svd",),
            ("svd-lya",),
            ("svd-clip",),
            ("svd-pi",),
            ("svd-taylor",),
            ("scipy",),
            ("pi",),
            ("svd-pade",),
        )
    )
    for name in names
}
"""Contestants keep their colours from plot to plot."""


@dataclass(frozen=True)
class Picture:
    title: str
    x: Axis
    y: Axis
    lines: Callable[[Sequence[Case]], list[Series]]


Point = tuple[float, float]


def _style(name: str, taken: int) -> int:
    return STYLES.get(name, len(STYLES) + taken)


def by_contestant(
    point: Callable[[Case], tuple[float | None, float | None]],
    keep: Callable[[Case], bool] = lambda case: True,
    worst: bool = False,
    ordered: bool = True,
    joined: bool = True,
) -> Callable[[Sequence[Case]], list[Series]]:
    """A line a contestant; ``worst`` draws the largest of several values at one place."""

    def lines(cases: Sequence[Case]) -> list[Series]:
        found: dict[str, list[Point]] = {}
        for case in filter(keep, cases):
            x, y = point(case)
            if _is_number(x) and _is_number(y):
                found.setdefault(case.contestant, []).append((x, y))  # type: ignore[arg-type]
        drawn = []
        for k, (name, points) in enumerate(found.items()):
            if worst:
                points = [(x, max(b for a, b in points if a == x)) for x in {a for a, _ in points}]
            drawn.append(Series(name, sorted(points) if ordered else points, _style(name, k), joined=joined))
        return drawn

    return lines


def _is_number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def curves(keep: Callable[[Case], bool] = lambda case: True) -> Callable[[Sequence[Case]], list[Series]]:
    """A line a case; those of one contestant differ in dashes."""

    def lines(cases: Sequence[Case]) -> list[Series]:
        seen: dict[str, int] = {}
        drawn = []
        for case in filter(keep, cases):
            again = seen[case.contestant] = seen.get(case.contestant, -1) + 1
            points = case.curve()
            style = _style(case.contestant, len(seen)) + 8 * again
            drawn.append(Series(case.case, points, style, marked=len(points) <= 40))
        return drawn

    return lines


def approximants(cases: Sequence[Case]) -> list[Series]:
    """What approximants make of z at the paper's settings, and the root itself."""
    settings = ({"degree": 11}, {"degree": 5}, {"iterations": 5})
    drawn = []
    for name, order in zip(("taylor", "pade", "newton-schulz"), settings, strict=True):
        case = find(cases, name, **order)
        z, values = ((case.values.get(key) if case else None) or [] for key in ("z", "value"))
        if isinstance(z, list) and isinstance(values, list):
            points = [(x, y) for x, y in zip(z, values, strict=False) if _is_number(x) and _is_number(y)]
            drawn += [Series(case.case, points, _style(name, 0), marked=False)] if case and points else []
    ends = [x for series in drawn for x, _ in series.points if abs(x) <= 1]
    exact = Series("√(1-z)", [(x, math.sqrt(1 - x)) for x in sorted(set(ends))], STYLES["exact"], marked=False)
    return [*drawn, exact] if drawn else []


def inverse(wanted: bool) -> Callable[[Case], bool]:
    return lambda case: bool(case.parameters.get("inverse")) == wanted


def gain(cases: Sequence[Case]) -> list[Series]:
    """The time of the others over the time of the default, against the multiplications of one product."""
    found: dict[str, list[Point]] = {}
    for ours in cases:
        same = {k: ours.parameters.get(k) for k in ("batch", "n")}
        if ours.contestant != "auto" or not ours.time or not all(_is_number(size) for size in same.values()):
            continue
        for name, theirs in (("eigh", decomposition(cases, **same)), ("paper", find(cases, "paper", **same))):
            if theirs and theirs.time:
                found.setdefault(name, []).append((same["batch"] * same["n"] ** 3, theirs.time / ours.time))  # type: ignore[operator]
    return [Series(name, sorted(points), STYLES[name], joined=False) for name, points in found.items()]


def work(case: Case) -> float | None:
    """Multiplications of one product, from ``64 x 48 x 48``."""
    numbers = [int(k) for k in re.findall(r"\d{1,9}", str(case.parameters.get("shape")))]
    return float(numbers[0] * numbers[1] ** 3) if len(numbers) >= 3 else None
