"""Result files: resumed where they fit, written whole or not at all, one case or result a line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from .._environment import environment
from .._files import write_whole
from .cases import Record, Settings
from .format import FORMAT, ResultError, read

SAME = ("processor", "cores", "threads", "device", "python", "torch", "matroot", "source")
"""What must agree between the environments of cases in one file."""


def path_of(folder: Path, settings: Settings) -> Path:
    """Where results with these settings are."""
    return folder / f"bench-{settings.device}-{settings.dtype}.json"


def start(settings: Settings) -> dict[str, Any]:
    """The content of a new file."""
    head = {"format": FORMAT, "command": "", "surroundings": environment(), "settings": asdict(settings)}
    return {**head, "cases": []}


def load(path: Path, settings: Settings) -> dict[str, Any] | None:
    """The content of a file to resume; None if there is no file.

    ResultError if it cannot be read, is damaged, or comes from other settings, another machine, other versions or
    other source code of matroot: one file never mixes them.
    """
    if not path.exists():
        return None
    _, content = read(path)
    now = start(settings)
    for part, keys in (("settings", now["settings"]), ("surroundings", SAME)):
        for key in keys:
            if content[part].get(key) != now[part][key]:
                why = "; the code of matroot has changed" if key == "source" else ""
                raise ResultError(
                    f"{path}: made with {part}.{key} = {content[part].get(key)!r}, now it is {now[part][key]!r}{why}"
                )
    return content


def command_of(settings: Settings, cases: Sequence[Record]) -> str:
    """The command that measures these cases."""
    suites = " ".join(dict.fromkeys(case["suite"] for case in cases))
    quick = " --quick" if settings.quick else ""
    return f"matroot bench --suite {suites} --device {settings.device} --dtype {settings.dtype}{quick}"


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write the content of a file of ``matroot bench``; ResultError if that fails, and the earlier file stays."""
    _write(path, {name: value for name, value in content.items() if name != "cases"}, "cases", content["cases"])


def save_program(path: Path, command: str, results: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Write the results of a program with its command, the environment, and ``facts`` that all results share."""
    require_writable(path)
    _write(path, {"command": command, "surroundings": environment(), **facts}, "results", results)


def require_writable(path: Path) -> None:
    """Make the folder; ResultError naming the path if a file cannot be made there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _cannot_write(path, error) from error


def _write(path: Path, head: Mapping[str, Any], key: str, rows: Sequence[Mapping[str, Any]]) -> None:
    start = json.dumps(head, indent=1, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(row, allow_nan=False) for row in rows)
    try:
        write_whole(path, f'{start[:-2]},\n "{key}": [\n{lines}\n ]\n}}\n'.encode())
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> ResultError:
    return ResultError(f"cannot write {path}: {error.strerror or error}")
