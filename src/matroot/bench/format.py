"""The format of result files, checked field by field, for ``matroot bench`` and ``matroot report``."""

import json
import math
from pathlib import Path
from typing import Any

from .._terminal import CommandError

FORMAT = "matroot-bench 1"
TIMES = ("median", "low", "high", "least")
CURVES = {"scalar": ("z", "error"), "residuals": ("steps", "residual")}
"""Suites whose values are lists, and the two lists of a curve."""

REQUIRED = {"surroundings": ("date", "processor", "python", "torch", "matroot"), "settings": ("device", "dtype")}
KINDS = {str: "a string", dict: "an object", list: "a list"}


class ResultError(CommandError):
    """A result file that cannot be read, resumed or written; the message names file and field."""


def read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a result file and what they say; ResultError if it cannot be read or is not as the format has it."""
    try:
        raw = path.read_bytes()
        document = json.loads(raw, parse_constant=_no_constant)
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not JSON, or cut off: {error}") from None
    try:
        _check(document)
    except WrongFieldError as wrong:
        raise ResultError(f"{path}: {wrong}") from None
    return raw, document


class WrongFieldError(Exception):
    """What is wrong with a document, without the name of its file."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"field {field} {wanted}")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _check(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise WrongFieldError("format", f'must be "{FORMAT}": this is no result file of matroot bench')
    _get(document, "command", str)
    for part, keys in REQUIRED.items():
        require_plain(_get(document, part, dict), part)
        for key in keys:
            _get(document[part], key, str, f"{part}.")
    seen: set[tuple[str, str]] = set()
    for k, case in enumerate(_get(document, "cases", list)):
        check_case(case, f"cases[{k}]")
        if (case["suite"], case["case"]) in seen:
            raise WrongFieldError(f"cases[{k}].case", f"repeats {case['case']!r} of suite {case['suite']!r}")
        seen.add((case["suite"], case["case"]))


def check_case(case: Any, at: str) -> None:
    """WrongFieldError, naming the field, unless this is a case; ``at`` is where it stands."""
    if not isinstance(case, dict):
        raise WrongFieldError(at, "must be an object")
    for key in ("suite", "case", "contestant"):
        _get(case, key, str, f"{at}.")
    require_plain(_get(case, "parameters", dict, f"{at}."), f"{at}.parameters")
    _get(case, "note", str, f"{at}.", or_null=True)
    times = _get(case, "milliseconds", dict, f"{at}.", or_null=True)
    if times is not None:
        for key in TIMES:
            _get(times, key, object, f"{at}.milliseconds.")
        _not_negative(times, f"{at}.milliseconds")
    _not_negative(_get(case, "errors", dict, f"{at}."), f"{at}.errors")
    for key, value in _get(case, "values", dict, f"{at}.").items():
        for item in value if isinstance(value, list) else [value]:
            _number(item, f"{at}.values.{key}")
    _check_curve(case, at)


def _check_curve(case: dict[str, Any], at: str) -> None:
    """A case that failed, which its note says, has no curve."""
    names = CURVES.get(case["suite"], ())
    lengths = {len(v) if isinstance(v := case["values"].get(name), list) else -1 for name in names}
    if len(lengths) > 1 or (-1 in lengths and case["note"] is None):
        raise WrongFieldError(f"{at}.values", f"must have lists of one length: {', '.join(names)}")


def _get(found: dict[str, Any], key: str, kind: Any, at: str = "", or_null: bool = False) -> Any:
    if key not in found:
        raise WrongFieldError(f"{at}{key}", "is missing")
    if not isinstance(found[key], kind) and not (or_null and found[key] is None):
        raise WrongFieldError(f"{at}{key}", f"must be {KINDS[kind]}{' or null' if or_null else ''}")
    return found[key]


def require_plain(found: dict[str, Any], at: str) -> None:
    """WrongFieldError for values that no cell of a table has: lists, objects, and numbers out of range."""
    for key, value in found.items():
        if not isinstance(value, str | bool | None):
            _number(value, f"{at}.{key}", "must be a string, a finite number, a truth value or null")


def _not_negative(found: dict[str, Any], at: str) -> None:
    for key, value in found.items():
        _number(value, f"{at}.{key}")
        if value is not None and value < 0:
            raise WrongFieldError(f"{at}.{key}", "must not be negative")


def _number(value: Any, at: str, wanted: str = "must be a finite number or null") -> None:
    # Integers beyond the range of floats are no measurements either.
    good = value is None or (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -1e200 < value < 1e200
        and math.isfinite(value)
    )
    if not good:
        raise WrongFieldError(at, wanted)
