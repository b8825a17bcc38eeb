"""One measurement, and how it is found among others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..format import CURVES


@dataclass(frozen=True)
class Case:
    """One measurement."""

    suite: str
    case: str
    contestant: str
    parameters: dict[str, Any]
    milliseconds: dict[str, float | None] | None
    errors: dict[str, float | None]
    values: dict[str, Any]
    note: str | None

    @property
    def time(self) -> float | None:
        """Median milliseconds, where there are any; no clock sees less than a femtosecond."""
        median = (self.milliseconds or {}).get("median")
        return median if median is not None and median > 1e-12 else None

    @property
    def is_empty(self) -> bool:
        """Whether it was left out, or failed: neither a time nor an error."""
        return self.time is None and all(error is None for error in self.errors.values())

    @property
    def is_inverse(self) -> bool:
        """Whether the inverse root was measured, in suites that measure both."""
        return bool(self.parameters.get("inverse"))

    def is_nan(self, kind: str) -> bool:
        """Whether an error was measured and is no number, which files write as null."""
        return kind in self.errors and self.errors[kind] is None

    def error(self, *names: str) -> float | None:
        """The first of some errors that was measured."""
        return next((e for name in names if (e := self.errors.get(name)) is not None), None)

    def curve(self) -> list[tuple[float, float]]:
        """Points of a case of ``scalar`` or ``residuals``."""
        xs, ys = (self.values.get(name) or [] for name in CURVES[self.suite])
        return [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]


def find(cases: Iterable[Case], contestant: str, **parameters: object) -> Case | None:
    """The first case of a contestant with these parameters."""
    return next(
        (
            case
            for case in cases
            if case.contestant == contestant and all(case.parameters.get(k) == v for k, v in parameters.items())
        ),
        None,
    )


def find_decomposition(cases: Sequence[Case], **parameters: object) -> Case | None:
    """``eigh``, which has the exact gradient, or else the preset ``svd``."""
    return find(cases, "eigh", **parameters) or find(cases, "svd", **parameters)
