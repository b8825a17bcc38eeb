"""What each suite is called, what the paper says about it, and what is drawn of it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .plots import Axis, Series
from .results import Case
from .words import decomposition, find

STYLES = {
    name: k
    for k, names in enumerate(
        (
            ("auto", "minimax+smith", "minimax"),
            ("eigh", "eigh (exact gradient)", "exact", "implicit"),
            ("mpa-lya", "pade", "lyapunov", "paper"),
            ("mtp-lya", "taylor"),
            ("ns", "newton-schulz", "newton-schulz unrolled", "unrolled"),
            ("eigh (autograd gradient)", "smith"),
            ("matrix_sqrth", "minimax+krylov"),
            ("ns-lya", "ns converged"),
            ("svd",),
            ("svd-lya",),
            ("svd-clip",),
            ("svd-pi",),
            ("svd-taylor",),
            ("svd-pade",),
            ("pi",),
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


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    paper: str | None = None
    paper_numbers: tuple[tuple[str, ...], ...] = ()
    """Head and rows of a table of the paper, measured on a Tesla K40."""
    pictures: tuple[Picture, ...] = ()


Point = tuple[float, float]


def _style(name: str, taken: int) -> int:
    return STYLES.get(name, len(STYLES) + taken)


def _by_contestant(
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


def _curves(cases: Sequence[Case]) -> list[Series]:
    """Cases of one contestant differ in dashes."""
    seen: dict[str, int] = {}
    drawn = []
    for case in cases:
        again = seen[case.contestant] = seen.get(case.contestant, -1) + 1
        points = case.curve()
        style = _style(case.contestant, len(seen)) + 8 * again
        drawn.append(Series(case.case, points, style, marked=len(points) <= 40))
    return drawn


def _inverse(wanted: bool) -> Callable[[Case], bool]:
    return lambda case: bool(case.parameters.get("inverse")) == wanted


def _gain(cases: Sequence[Case]) -> list[Series]:
    """The time of the others over the time of the default, a line a batch size."""
    found: dict[str, list[Point]] = {}
    for ours in cases:
        if ours.contestant != "auto" or not ours.time or not _is_number(ours.parameters.get("n")):
            continue
        same = {k: ours.parameters.get(k) for k in ("batch", "n")}
        for what, theirs in (("eigh", decomposition(cases, **same)), ("paper", find(cases, "paper", **same))):
            if theirs and theirs.time:
                label = f"{what}, batch {ours.parameters.get('batch')}"
                found.setdefault(label, []).append((ours.parameters["n"], theirs.time / ours.time))
    return [Series(name, sorted(points), k) for k, (name, points) in enumerate(sorted(found.items()))]


def _work(case: Case) -> float | None:
    """Multiplications of one product, from ``64 x 48 x 48``."""
    numbers = [int(k) for k in re.findall(r"\d{1,9}", str(case.parameters.get("shape")))]
    return float(numbers[0] * numbers[1] ** 3) if len(numbers) >= 3 else None


MS = Axis("milliseconds")
ERROR = Axis("error")

SECTIONS = {
    "speed": Section(
        "Speed of the default",
        "Forward and backward of the root, for many shapes: how many times as long another solver takes. Above 1 the"
        " default is faster.",
        pictures=(Picture("Time of others over time of the default", Axis("n"), Axis("times as long"), _gain),),
    ),
    "accuracy": Section(
        "Accuracy",
        "Largest error of each solver on matrices of known spectrum, against an eigendecomposition in float64.",
        pictures=tuple(
            Picture(
                f"Error of the {what} against the condition number",
                Axis("condition number"),
                ERROR,
                _by_contestant(lambda c, kind=kind: (c.parameters.get("condition"), c.error(kind)), worst=True),
            )
            for kind, what in (("root", "root"), ("root_gradient", "gradient"))
        ),
    ),
    "scalar": Section(
        "The scalar picture",
        "How far the approximants are from \u221a(1\u2212z) for |z| < 1.",
        "The Padé approximants are closer than Newton-Schulz and the Taylor polynomial for every z; near z = 1, where"
        " the error of these is larger, they are still reasonable.",
        pictures=(Picture("Error on |z| < 1", Axis("z", log=False), ERROR, _curves),),
    ),
    "forward": Section(
        "Forward: error against time",
        "Covariances of size 64 x 64. Down and to the left is better.",
        "Taylor (MTP) takes the least time, Padé (MPA) slightly more but is closer; the curve of Padé lies below that"
        " of Newton-Schulz everywhere, and Padé is more exact than Newton-Schulz even at degree 8.",
        pictures=(
            Picture(
                "Root: mean absolute error against time",
                MS,
                ERROR,
                _by_contestant(lambda c: (c.time, c.error("mae")), _inverse(False), ordered=False),
            ),
            Picture(
                "Inverse root: error of whitening against time",
                MS,
                ERROR,
                _by_contestant(lambda c: (c.time, c.error("whitening", "mae")), _inverse(True), ordered=False),
            ),
        ),
    ),
    "backward": Section(
        "Backward: time against iterations",
        "The backward pass alone.",
        "The Lyapunov solver with 8 iterations is faster than Newton-Schulz with 5; the inverse root costs only"
        " marginally more.",
        pictures=(
            Picture(
                "Root: time against iterations",
                Axis("iterations", log=False),
                MS,
                _by_contestant(lambda c: (c.parameters.get("iterations"), c.time), _inverse(False)),
            ),
            Picture(
                "Inverse root: time against iterations",
                Axis("iterations", log=False),
                MS,
                _by_contestant(lambda c: (c.parameters.get("iterations"), c.time), _inverse(True)),
            ),
            Picture(
                "Root: error of the gradient against time",
                MS,
                ERROR,
                _by_contestant(lambda c: (c.time, c.error("gradient")), _inverse(False), ordered=False),
            ),
        ),
    ),
    "batch": Section(
        "Time against batch size",
        "Forward and backward of the root of 64 x 64 matrices.",
        "MPA-Lya and MTP-Lya are faster than Newton-Schulz and SVD at every batch size. At 64, on a Tesla K40: MPA-Lya"
        " 2.58 times as fast as Newton-Schulz and 27.25 times as fast as SVD; MTP-Lya 5.82 and 61.32 times.",
        pictures=(
            Picture(
                "Time against batch size",
                Axis("batch size"),
                MS,
                _by_contestant(lambda c: (c.parameters.get("batch"), c.time)),
            ),
        ),
    ),
    "dimension": Section(
        "Time and error against dimension",
        "Forward and backward of the root of n x n matrices.",
        "MPA-Lya and MTP-Lya are faster than the others in every dimension; below n = 32 Newton-Schulz is not faster"
        " than SVD; MPA-Lya is always closer than Newton-Schulz.",
        pictures=(
            Picture("Time against n", Axis("n"), MS, _by_contestant(lambda c: (c.parameters.get("n"), c.time))),
            Picture(
                "Error of the root against n",
                Axis("n"),
                ERROR,
                _by_contestant(lambda c: (c.parameters.get("n"), c.error("root"))),
            ),
        ),
    ),
    "schemes": Section(
        "Backward schemes",
        "The backward pass of 64 matrices of size 64 x 64 in three ways: time and memory.",
        "The Lyapunov solver is ahead of both automatic differentiation (RMAD) and the implicit function (IF) in time"
        " and memory.",
        (
            ("scheme", "milliseconds", "megabytes"),
            ("Lyapunov", "2.19", "1.99"),
            ("RMAD (unrolled)", "5.69", "3.08"),
            ("IF (implicit)", "4.71", "2.03"),
        ),
        (
            Picture(
                "Memory against time",
                MS,
                Axis("megabytes", log=False),
                _by_contestant(lambda c: (c.time, c.values.get("megabytes")), joined=False),
            ),
        ),
    ),
    "residuals": Section(
        "Residuals against iterations",
        "How the relative residual of the root falls with each step.",
        pictures=(Picture("Residual against steps", Axis("steps", log=False), Axis("residual"), _curves),),
    ),
    "pade": Section(
        "Degree of the Padé approximant",
        "Error and time of [3,3] to [6,6].",
        "The error falls steadily from [3,3] to [5,5]; [6,6] improves only marginally.",
        (("degree", "milliseconds"), ("[3,3]", "0.80"), ("[4,4]", "0.86"), ("[5,5]", "0.93"), ("[6,6]", "0.98")),
        tuple(
            Picture(
                f"{what}: error against degree",
                Axis("degree", log=False),
                ERROR,
                _by_contestant(lambda c: (c.parameters.get("degree"), c.error(*c.errors)), _inverse(inverse)),
            )
            for inverse, what in ((False, "Root"), (True, "Inverse root"))
        ),
    ),
    "applications": Section(
        "Shapes of the applications",
        "Forward and backward at the shapes of the paper's networks.",
        "MPA-Lya against Newton-Schulz and SVD, on a Tesla K40: second-order transformer (64 x 48 x 48) 3.19 and 25.63"
        " times as fast; covariance pooling (256 x 256 x 256) about 1.5 and 21; video (16 x 128 x 128) 1.74 and 10.82.",
        pictures=(
            Picture(
                "Time against size of the problem",
                Axis("batch x n x n x n"),
                MS,
                _by_contestant(lambda c: (_work(c), c.time), joined=False),
            ),
        ),
    ),
}


def section(suite: str) -> Section:
    """A suite of a later version has its table."""
    return SECTIONS.get(suite) or Section(suite, "Not known to this version: the numbers only.")
