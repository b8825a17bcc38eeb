"""Result files of ``matroot bench`` as objects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..format import CURVES
from ..format import read as read_document

SINGULAR = "low-rank"
"""The spectrum of the accuracy suite with zeros in it."""


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
    def is_inverse(self) -> bool:
        """Whether the inverse root was measured, in suites that measure both."""
        return bool(self.parameters.get("inverse"))

    def error(self, *names: str) -> float | None:
        """The first of some errors that was measured."""
        return next((e for name in names if (e := self.errors.get(name)) is not None), None)

    def curve(self) -> list[tuple[float, float]]:
        """Points of a case of ``scalar`` or ``residuals``."""
        xs, ys = (self.values.get(name) or [] for name in CURVES[self.suite])
        return [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]


@dataclass(frozen=True)
class Results:
    """One file: a device, a dtype, and what was measured with them."""

    path: Path
    raw: bytes
    command: str
    environment: dict[str, Any]
    settings: dict[str, Any]
    cases: tuple[Case, ...]
    name: str = ""

    def suite(self, name: str) -> list[Case]:
        return [case for case in self.cases if case.suite == name]

    @property
    def device(self) -> str:
        """The device's own name."""
        on_gpu = not str(self.settings["device"]).startswith("cpu")
        return str((on_gpu and self.environment.get("device")) or self.environment["processor"])


def read(path: Path) -> Results:
    """A checked result file; raises ``ResultError``."""
    raw, document = read_document(path)
    cases = tuple(Case(**{key: case[key] for key in Case.__annotations__}) for case in document["cases"])
    return Results(path, raw, document["command"], document["surroundings"], document["settings"], cases)


def named(files: Sequence[Results]) -> list[Results]:
    """The same with names that tell them apart: device and dtype, then the file name, then a number."""
    names = [f"{one.device}, {one.settings['dtype']}" for one in files]
    names = [
        name if names.count(name) == 1 else f"{name} ({one.path.name})" for name, one in zip(names, files, strict=True)
    ]
    names = [name if names.count(name) == 1 else f"{name} #{k}" for k, name in enumerate(names, 1)]
    return [replace(one, name=name) for one, name in zip(files, names, strict=True)]


def suites(files: Iterable[Results]) -> list[str]:
    """Names of the suites in some files, in order of appearance."""
    return list(dict.fromkeys(case.suite for one in files for case in one.cases))


def case_names(suite: str, files: Iterable[Results]) -> list[str]:
    """Names of the cases of a suite in any of the files."""
    return list(dict.fromkeys(case.case for one in files for case in one.suite(suite)))


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
