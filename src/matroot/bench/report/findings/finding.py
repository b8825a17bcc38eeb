"""A finding, and how the cases it compares are selected."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...formatting import number
from ..case import Case, find, find_decomposition

PROBLEM = ("case", "batch", "n", "shape", "output", "spectrum", "condition")
"""Parameters of the problem; the others are the solver's."""

Pair = tuple[Case, Case]


@dataclass(frozen=True)
class Finding:
    """A sentence and the cases whose numbers it states; ``lead`` are its first words, a number to be seen first."""

    text: str
    cases: tuple[Case, ...]
    lead: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.lead} {self.text}".strip()


def problem(case: Case) -> dict[str, object]:
    """The parameters that two cases share if they solve the same problem."""
    return {k: v for k, v in case.parameters.items() if k in PROBLEM}


def pairs(cases: Sequence[Case], contestant: str, other: str) -> list[Pair]:
    """The cases of two contestants on the same problems."""
    return [(a, b) for a in cases if a.contestant == contestant and (b := find(cases, other, **problem(a)))]


def pairs_with_decomposition(cases: Sequence[Case], contestant: str) -> list[Pair]:
    """The cases of a contestant and of a decomposition on the same problems."""
    return [(a, b) for a in cases if a.contestant == contestant and (b := find_decomposition(cases, **problem(a)))]


def pairs_with_root_errors(cases: Sequence[Case]) -> list[Pair]:
    """The cases of MPA-Lya and of Newton-Schulz on the same problems, where both have an error of the root."""
    return [(a, b) for a, b in pairs(cases, "mpa-lya", "ns") if None not in (a.error("root"), b.error("root"))]


def flatten(found: Iterable[Pair]) -> tuple[Case, ...]:
    return tuple(case for pair in found for case in pair)


def timed(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case.time]


def with_inverse(cases: Iterable[Case], inverse: bool) -> list[Case]:
    """The cases of the inverse root, or those of the root."""
    return [case for case in cases if case.is_inverse == inverse]


def time_of(case: Case) -> float:
    """Median milliseconds of a case that has them."""
    return case.time or 0.0


def error_of(case: Case, *kinds: str) -> float:
    """The first of some errors, of a case that has one."""
    return case.error(*kinds) or 0.0


def worst(cases: Iterable[Case], kind: str) -> Case | None:
    """The case with the largest error; what is no number is above all numbers."""
    measured = [case for case in cases if kind in case.errors]
    return max(measured, key=lambda case: math.inf if case.is_nan(kind) else error_of(case, kind), default=None)


def error_text(case: Case, kind: str) -> str:
    """An error that was measured, ``nan`` where it is no number."""
    return number(case.errors[kind], missing="nan")
