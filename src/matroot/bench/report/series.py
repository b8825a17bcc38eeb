"""The series of a plot, taken from the cases of a suite, and the style of every contestant."""

import math
import re
from collections.abc import Callable, Sequence

from ..._page.drawing import COLOURS
from .case import Case, find
from .charts import GREY, Point, Series

MakeSeries = Callable[[Sequence[Case]], list[Series]]

MAX_MARKED = 40
"""Longer curves are drawn without markers."""

STYLES = {
    name: style
    for style, names in enumerate(
        (
            ("auto", "minimax+smith", "minimax", "with Python"),
            ("eigh", "torch eigh", "exact", "implicit"),
            ("mpa-lya", "pade", "lyapunov", "paper"),
            ("mtp-lya", "taylor"),
            ("ns", "newton-schulz", "newton-schulz unrolled", "unrolled"),
            ("jax eigh", "svd", "smith", "ns converged"),
            ("cupy eigh", "scipy"),
            ("matrix_sqrth", "ns-lya", "minimax+krylov"),
        )
    )
    for name in names
} | {
    "matroot": 0,
    "in a CUDA graph": COLOURS,
    "matroot forward": COLOURS,
    "torch eigh forward": COLOURS + 1,
}
"""Contestants keep their colours from chart to chart."""
STANDS_BACK = {
    "eigh autograd": "eigh, autograd",
    "svd-lya": "SVD, other gradients",
    "svd-clip": "SVD, other gradients",
    "svd-pi": "SVD, other gradients",
    "svd-taylor": "SVD, other gradients",
    "svd-pade": "SVD, other gradients",
    "pi": "power iteration",
    "torch.compile": "torch.compile",
}
"""Drawn thin and grey, with one label for those that hardly differ."""
LABELS = {
    "auto": "matroot",
    "minimax+smith": "matroot (smith)",
    "minimax+krylov": "matroot (krylov)",
    "minimax": "matroot",
    "in a CUDA graph": "matroot, CUDA graph",
    "pade": "Padé",
    "taylor": "Taylor",
    "newton-schulz": "Newton-Schulz",
    "newton-schulz unrolled": "unrolled Newton-Schulz",
    "ns converged": "converged NS",
    "lyapunov": "Lyapunov",
    "eigh": "torch eigh",
    "jax eigh": "JAX eigh, forward",
    "cupy eigh": "CuPy eigh, forward",
    "paper": "paper's MPA-Lya",
    "mpa-lya": "MPA-Lya",
    "mtp-lya": "MTP-Lya",
    "ns": "Newton-Schulz",
    "ns-lya": "NS-Lya",
    "svd": "SVD",
    "scipy": "SciPy, forward",
} | STANDS_BACK
"""What contestants are called in legends."""


def label(contestant: str) -> str:
    return LABELS.get(contestant, contestant)


def label_with_order(case: Case) -> str:
    """``Taylor, degree 11``."""
    degree, iterations = (case.parameters.get(key) for key in ("degree", "iterations"))
    order = [f"degree {degree}"] * (degree is not None) + [f"{iterations} iterations"] * (iterations is not None)
    return ", ".join([label(case.contestant), *order])


def _style(contestant: str, index: int) -> int:
    """The style of a contestant; unknown ones get those after the known, by their index in the chart."""
    return GREY if contestant in STANDS_BACK else STYLES.get(contestant, COLOURS + index)


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
    """One series per contestant; ``largest`` keeps the largest y at each x where all are numbers, ``ordered`` sorts."""

    def make(cases: Sequence[Case]) -> list[Series]:
        points: dict[str, list[Point]] = {}
        gaps: dict[str, set[float]] = {}
        for case in filter(keep, cases):
            x, y = point(case)
            if _is_number(x) and _is_number(y):
                points.setdefault(case.contestant, []).append((x, y))  # type: ignore[arg-type]
            elif _is_number(x):
                gaps.setdefault(case.contestant, set()).add(x)  # type: ignore[arg-type]
        if largest:
            points = {name: _largest_at_each_x(ps, gaps.get(name, set())) for name, ps in points.items()}
        return [
            Series(name, sorted(ps) if ordered else ps, _style(name, index), joined=joined, label=label(name))
            for index, (name, ps) in enumerate(points.items())
            if ps
        ]

    return make


def _largest_at_each_x(points: Sequence[Point], gaps: set[float]) -> list[Point]:
    return [(x, max(b for a, b in points if a == x)) for x in {a for a, _ in points} - gaps]


def curves(keep: Callable[[Case], bool] = every_case) -> MakeSeries:
    """One series per case of a suite of curves; those of one contestant share a colour and differ in dashes."""

    def make(cases: Sequence[Case]) -> list[Series]:
        repeats: dict[str, int] = {}
        series = []
        for case in filter(keep, cases):
            repeat = repeats[case.contestant] = repeats.get(case.contestant, -1) + 1
            points = case.curve()
            style = _style(case.contestant, len(repeats)) + COLOURS * repeat
            series.append(Series(label_with_order(case), points, style, marked=len(points) <= MAX_MARKED))
        return series

    return make


def approximants(cases: Sequence[Case]) -> list[Series]:
    """The values of the approximants at the paper's settings, and the root itself."""
    settings = {"taylor": {"degree": 11}, "pade": {"degree": 5}, "newton-schulz": {"iterations": 5}}
    found = [case for name, order in settings.items() if (case := find(cases, name, **order))]
    series = [
        Series(label_with_order(case), points, STYLES[case.contestant], marked=False)
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


Marks = Callable[[Case], Sequence[tuple[str, float | None]]]
"""Names and numbers of a case; each name is a series."""


def time_of_contestant(case: Case) -> list[tuple[str, float | None]]:
    return [(case.contestant, case.time)]


def in_rows(row: Callable[[Case], str], marks: Marks = time_of_contestant) -> MakeSeries:
    """Series without lines, their points (number, row)."""

    def make(cases: Sequence[Case]) -> list[Series]:
        places = {name: float(k) for k, name in enumerate(row_names(cases, row))}
        points: dict[str, list[Point]] = {}
        for case in cases:
            for name, value in marks(case):
                if _is_number(value):
                    points.setdefault(name, []).append((value, places[row(case)]))  # type: ignore[arg-type]
        return [
            Series(name, ps, _style(name, index), joined=False, label=label(name))
            for index, (name, ps) in enumerate(points.items())
        ]

    return make


def row_names(cases: Sequence[Case], row: Callable[[Case], str]) -> list[str]:
    """A name for each problem, the smallest first."""
    return list(dict.fromkeys(row(case) for case in sorted(cases, key=_work)))


def shape_row(case: Case) -> str:
    """``64 x 48 x 48``, with the output where a suite measures several."""
    batch, n, output = (case.parameters.get(key) for key in ("batch", "n", "output"))
    shape = case.parameters.get("shape", f"{batch} x {n} x {n}")
    return f"{shape}, {output}" if output else str(shape)


def _work(case: Case) -> float:
    """Multiplications of one product of the matrices of a case; zero where it does not say which."""
    numbers = [int(k) for k in re.findall(r"\d{1,9}", shape_row(case))]
    return float(numbers[0] * numbers[1] ** 3) if len(numbers) >= 3 else 0.0
