"""Result files as objects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..format import read as read_document
from .case import Case
from .programs import is_program, read_json, settings_and_cases

SINGULAR = "low-rank"
"""The spectrum of the accuracy suite with zeros in it."""


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

    @property
    def date(self) -> str:
        """The day."""
        return str(self.environment["date"]).partition("T")[0]


def read(path: Path) -> Results:
    """A checked result file, of ``matroot bench`` or of a program beside it; raises ``ResultError``."""
    raw, document = read_json(path)
    if is_program(document):
        settings, cases = settings_and_cases(path, document)
        environment = document["surroundings"] | {
            name: version for name, version in (document.get("versions") or {}).items() if version
        }
        return Results(path, raw, document["command"], environment, settings, cases)
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
