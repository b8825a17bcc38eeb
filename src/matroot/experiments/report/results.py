"""Result files of ``matroot bench``: read, and checked field by field."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..bench.results import FORMAT

CURVES = {"scalar": ("z", "error"), "residuals": ("steps", "residual")}
"""Suites whose values are lists, and the two lists of a curve."""


class BadFileError(ValueError):
    """A file that is no result file; the message names the file and the field."""


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
    surroundings: dict[str, Any]
    settings: dict[str, Any]
    cases: tuple[Case, ...]
    name: str = ""

    def suite(self, name: str) -> list[Case]:
        return [case for case in self.cases if case.suite == name]

    @property
    def device(self) -> str:
        """The device's own name."""
        on_gpu = not str(self.settings["device"]).startswith("cpu")
        return str((on_gpu and self.surroundings.get("device")) or self.surroundings["processor"])


def read(path: Path) -> Results:
    """A checked result file; raises ``BadFileError``."""
    try:
        raw = path.read_bytes()
        document = json.loads(raw, parse_constant=_no_constant)
    except OSError as error:
        raise BadFileError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"{path}: not JSON, or cut off: {error}") from None
    try:
        return _results(path, raw, document)
    except _WrongFieldError as wrong:
        raise BadFileError(f"{path}: {wrong}") from None


def named(files: Sequence[Results]) -> list[Results]:
    """The same with names that tell them apart: device and dtype, and the file where that is not enough."""
    names = [f"{one.device}, {one.settings['dtype']}" for one in files]
    found = []
    for one, name in zip(files, names, strict=True):
        found.append(replace(one, name=name if names.count(name) == 1 else f"{name} ({one.path.name})"))
    # The same file name in two folders.
    again = [one.name for one in found]
    return [
        replace(one, name=f"{one.name} #{k}") if again.count(one.name) > 1 else one for k, one in enumerate(found, 1)
    ]


class _WrongFieldError(Exception):
    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"field {field} {wanted}")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _results(path: Path, raw: bytes, document: Any) -> Results:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _WrongFieldError("format", f'must be "{FORMAT}": this is no result file of matroot bench')
    surroundings = _plain(_get(document, "surroundings", dict), "surroundings")
    for key in ("date", "processor", "python", "torch", "matroot"):
        _get(surroundings, key, str, "surroundings.")
    settings = _plain(_get(document, "settings", dict), "settings")
    for key in ("device", "dtype"):
        _get(settings, key, str, "settings.")
    cases = tuple(_case(case, f"cases[{k}]") for k, case in enumerate(_get(document, "cases", list)))
    seen: set[tuple[str, str]] = set()
    for k, case in enumerate(cases):
        if (case.suite, case.case) in seen:
            raise _WrongFieldError(f"cases[{k}].case", f"repeats {case.case!r} of suite {case.suite!r}")
        seen.add((case.suite, case.case))
    return Results(path, raw, _get(document, "command", str), surroundings, settings, cases)


def _case(case: Any, at: str) -> Case:
    if not isinstance(case, dict):
        raise _WrongFieldError(at, "must be an object")
    suite, name, contestant = (_get(case, key, str, f"{at}.") for key in ("suite", "case", "contestant"))
    times = case.get("milliseconds")
    if times is not None:
        times = _numbers(_get(case, "milliseconds", dict, f"{at}."), f"{at}.milliseconds")
        _not_negative(times, f"{at}.milliseconds")
        _get(times, "median", object, f"{at}.milliseconds.")
    values = _get(case, "values", dict, f"{at}.") if case.get("values") is not None else {}
    for key, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            _number(item, f"{at}.values.{key}")
    lengths = {len(values[key]) if isinstance(values.get(key), list) else -1 for key in CURVES.get(suite, ())}
    if len(lengths) > 1 or (-1 in lengths and case.get("note") is None):
        raise _WrongFieldError(f"{at}.values", f"must have lists of one length: {', '.join(CURVES[suite])}")
    errors = _get(case, "errors", dict, f"{at}.") if case.get("errors") is not None else {}
    _not_negative(_numbers(errors, f"{at}.errors"), f"{at}.errors")
    note = _get(case, "note", str, f"{at}.") if case.get("note") is not None else None
    parameters = _plain(_get(case, "parameters", dict, f"{at}."), f"{at}.parameters")
    return Case(suite, name, contestant, parameters, times, errors, values, note)


def _get(found: dict[str, Any], key: str, kind: Any, at: str = "") -> Any:
    if key not in found:
        raise _WrongFieldError(f"{at}{key}", "is missing")
    if not isinstance(found[key], kind):
        kinds = {str: "a string", dict: "an object", list: "a list"}
        raise _WrongFieldError(f"{at}{key}", f"must be {kinds[kind]}")
    return found[key]


def _plain(found: dict[str, Any], at: str) -> dict[str, Any]:
    for key, value in found.items():
        if not isinstance(value, str | bool | None):
            _number(value, f"{at}.{key}", "must be a string, a finite number, a truth value or null")
    return found


def _numbers(found: dict[str, Any], at: str) -> dict[str, float | None]:
    for key, value in found.items():
        _number(value, f"{at}.{key}")
    return found


def _not_negative(found: dict[str, float | None], at: str) -> None:
    for key, value in found.items():
        if value is not None and value < 0:
            raise _WrongFieldError(f"{at}.{key}", "must not be negative")


def _number(value: Any, at: str, wanted: str = "must be a finite number or null") -> None:
    # Integers beyond the range of floats are no measurements either.
    good = value is None or (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -1e200 < value < 1e200
        and math.isfinite(value)
    )
    if not good:
        raise _WrongFieldError(at, wanted)


def suites(files: Iterable[Results]) -> list[str]:
    """Names of the suites in some files, in order of appearance."""
    return list(dict.fromkeys(case.suite for one in files for case in one.cases))
