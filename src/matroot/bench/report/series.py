"""The series of a plot, taken from the cases of a suite, and the style of every contestant."""

import math
import re
from collections.abc import Callable, Sequence

from .plots import COLOURS, Point, Series
from .results import Case, find, find_decomposition

MakeSeries = Callable[[Sequence[Case]], list[Series]]

MAX_MARKED = 40
"""Longer curves are drawn without markers."""

STYLES = {
    name: style
    for style, names in enumerate(
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


def _style(contestant: str, index: int) -> int:
    """The style of a contestant; unknown ones get those after the known, by their index in the plot."""
    return STYLES.get(contestant, len(STYLES) + index)


def _is_number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def every_case(case: Case) -> bool:
    return True


def is_root(case: Case) -> bool:
    return not case.is_inverse


def is_inverse(case: Case) -> bool:
    return case.is_inverse


def by_contestant(
    point: Callable[[Case], tuple[float | None, float | None]],
    keep: Callable[[Case], bool] = every_case,
    largest: bool = False,
    ordered: bool = True,
    joined: bool = True,
) -> MakeSeries:
    """One series per contestant; ``largest`` keeps the largest y at each x, ``ordered`` sorts by x."""

    def make(cases: Sequence[Case]) -> list[Series]:
        points: dict[str, list[Point]] = {}
        for case in filter(keep, cases):
            x, y = point(case)
            if _is_number(x) and _is_number(y):
                points.setdefault(case.contestant, []).append((x, y))  # type: ignore[arg-type]
        if largest:
            points = {name: _largest_at_each_x(ps) for name, ps in points.items()}
        return [
            Series(name, sorted(ps) if ordered else ps, _style(name, index), joined=joined)
            for index, (name, ps) in enumerate(points.items())
        ]

    return make


def _largest_at_each_x(points: Sequence[Point]) -> list[Point]:
    return [(x, max(b for a, b in points if a == x)) for x in {a for a, _ in points}]


def curves(keep: Callable[[Case], bool] = every_case) -> MakeSeries:
    """One series per case of a suite of curves; those of one contestant share a colour and differ in dashes."""

    def make(cases: Sequence[Case]) -> list[Series]:
        repeats: dict[str, int] = {}
        series = []
        for case in filter(keep, cases):
            repeat = repeats[case.contestant] = repeats.get(case.contestant, -1) + 1
            points = case.curve()
            style = _style(case.contestant, len(repeats)) + COLOURS * repeat
            series.append(Series(case.case, points, style, marked=len(points) <= MAX_MARKED))
        return series

    return make


def approximants(cases: Sequence[Case]) -> list[Series]:
    """The values of the approximants at the paper's settings, and the root itself."""
    settings = {"taylor": {"degree": 11}, "pade": {"degree": 5}, "newton-schulz": {"iterations": 5}}
    found = [case for name, order in settings.items() if (case := find(cases, name, **order))]
    series = [
        Series(case.case, points, STYLES[case.contestant], marked=False)
        for case in found
        if (points := _value_points(case))
    ]
    if not series:
        return []
    zs = sorted({x for one in series for x, _ in one.points if abs(x) <= 1})
    return [*series, Series("√(1-z)", [(z, math.sqrt(1 - z)) for z in zs], STYLES["exact"], marked=False)]


def _value_points(case: Case) -> list[Point]:
    z, values = (found if isinstance(found := case.values.get(key), list) else [] for key in ("z", "value"))
    return [(x, y) for x, y in zip(z, values, strict=False) if _is_number(x) and _is_number(y)]


def speedup(cases: Sequence[Case]) -> list[Series]:
    """The time of other solvers over the time of the default, against the multiplications of one matrix product."""
    points: dict[str, list[Point]] = {}
    for auto in cases:
        batch, n = auto.parameters.get("batch"), auto.parameters.get("n")
        if auto.contestant != "auto" or not auto.time or not (_is_number(batch) and _is_number(n)):
            continue
        others = {"eigh": find_decomposition(cases, batch=batch, n=n), "paper": find(cases, "paper", batch=batch, n=n)}
        for name, other in others.items():
            if other and other.time:
                points.setdefault(name, []).append((batch * n**3, other.time / auto.time))  # type: ignore[operator]
    return [Series(name, sorted(ps), STYLES[name], joined=False) for name, ps in points.items()]


def multiplications(case: Case) -> float | None:
    """Multiplications of one product of matrices of a case's shape, ``64 x 48 x 48``."""
    numbers = [int(k) for k in re.findall(r"\d{1,9}", str(case.parameters.get("shape")))]
    return float(numbers[0] * numbers[1] ** 3) if len(numbers) >= 3 else None
