"""A sentence with the cases it speaks of, and how cases are looked up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .results import Case


@dataclass(frozen=True)
class Claim:
    """A sentence and the cases whose numbers it states."""

    text: str
    cases: tuple[Case, ...]


def find(cases: Iterable[Case], contestant: str, **parameters: object) -> Case | None:
    return next(
        (
            case
            for case in cases
            if case.contestant == contestant and all(case.parameters.get(k) == v for k, v in parameters.items())
        ),
        None,
    )


def decomposition(cases: Sequence[Case], **parameters: object) -> Case | None:
    """The yardstick: eigh, with the exact gradient where there is a choice."""
    return find(cases, "eigh", **parameters) or find(cases, "svd", **parameters)


def same(case: Case) -> dict[str, object]:
    """The parameters of the problem, whoever solves it."""
    return {k: v for k, v in case.parameters.items() if k in ("batch", "n", "shape", "output")}


def inverse_of(cases: Iterable[Case], inverse: bool) -> list[Case]:
    return [case for case in cases if bool(case.parameters.get("inverse")) == inverse]


def time_of(case: Case) -> float:
    return case.time or 0.0


def error_of(case: Case, *kinds: str) -> float:
    return case.error(*kinds) or 0.0
