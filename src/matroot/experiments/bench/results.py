"""The result file of ``matroot bench``: read with suspicion, written whole or not at all."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..timing import surroundings
from .cases import Record, Settings

FORMAT = "matroot-bench 1"
SAME = ("processor", "cores", "threads", "device", "python", "torch", "matroot")
"""What must agree between the surroundings of cases in one file."""

FIELDS: dict[str, type | tuple[type, ...]] = {
    "suite": str,
    "case": str,
    "contestant": str,
    "parameters": dict,
    "milliseconds": (dict, type(None)),
    "errors": dict,
    "values": dict,
    "note": (str, type(None)),
}


class ResultError(Exception):
    """A result file that cannot be read, gone on with, or written; the message names file and field."""


def path_of(folder: Path, settings: Settings) -> Path:
    """Where results with these settings are."""
    return folder / f"bench-{settings.device}-{settings.dtype}.json"


def start(settings: Settings) -> dict[str, Any]:
    """The content of a new file."""
    head = {"format": FORMAT, "command": "", "surroundings": surroundings(), "settings": asdict(settings)}
    return {**head, "cases": []}


def load(path: Path, settings: Settings) -> dict[str, Any] | None:
    """The content of a file to go on with; None if there is no file.

    ResultError if it cannot be read, is damaged, or comes from other settings, another machine or other versions.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path} is damaged: {error}") from error
    problem = damage(content)
    if problem is not None:
        raise ResultError(f"{path} is damaged or of another format: {problem}")
    now = start(settings)
    for part, keys in (("settings", now["settings"]), ("surroundings", SAME)):
        for key in keys:
            if content[part].get(key) != now[part][key]:
                raise ResultError(
                    f"{path} was made with {part}.{key} = {content[part].get(key)!r}, now it is {now[part][key]!r}"
                )
    return content


def damage(content: Any) -> str | None:
    """The first field that is not as the format has it; None if all are."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return f"field format is not {FORMAT!r}"
    for name, kind in (("command", str), ("surroundings", dict), ("settings", dict), ("cases", list)):
        if not isinstance(content.get(name), kind):
            return f"field {name} is missing or not a {kind.__name__}"
    seen: set[tuple[str, str]] = set()
    for place, case in enumerate(content["cases"]):
        problem = _case_damage(case)
        if problem is None and (case["suite"], case["case"]) in seen:
            problem = "suite and case: there is another one with the same"
        if problem is not None:
            return f"field cases[{place}].{problem}"
        seen.add((case["suite"], case["case"]))
    return None


def _case_damage(case: Any) -> str | None:
    if not isinstance(case, dict):
        return "suite is missing"
    for name, kind in FIELDS.items():
        if name not in case or not isinstance(case[name], kind):
            return f"{name} is missing or of the wrong type"
    for name in ("milliseconds", "errors"):
        for key, value in (case[name] or {}).items():
            if not _number(value):
                return f"{name}.{key} is neither null nor a finite number"
    if case["milliseconds"] is not None and set(case["milliseconds"]) != {"median", "low", "high", "least"}:
        return "milliseconds does not have median, low, high, least"
    for key, value in case["values"].items():
        if not all(map(_number, value if isinstance(value, list) else [value])):
            return f"values.{key} holds something that is neither null nor a finite number"
    return None


def _number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value))


def command_of(settings: Settings, cases: Sequence[Record]) -> str:
    """The command that measures these cases."""
    suites = " ".join(dict.fromkeys(case["suite"] for case in cases))
    quick = " --quick" if settings.quick else ""
    return f"matroot bench --suite {suites} --device {settings.device} --dtype {settings.dtype}{quick}"


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a temporary file, then put it in place, one case a line.

    ResultError naming the path if that fails; what was there before stays.
    """
    head = json.dumps({name: value for name, value in content.items() if name != "cases"}, indent=1, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(case, allow_nan=False) for case in content["cases"])
    partial = path.with_suffix(".partial")
    try:
        try:
            partial.write_text(f'{head[:-2]},\n "cases": [\n{lines}\n ]\n}}\n', encoding="utf-8")
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ResultError(f"cannot write {path}: {error.strerror or error}") from error


def require_writable(path: Path) -> None:
    """Make the folder; ResultError naming the path if a file cannot be made there."""
    probe = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ResultError(f"cannot write {path}: {error.strerror or error}") from error
