"""The result file of a run: gone on with where it fits, written whole or not at all."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .cases import Record, Settings
from .files import write_whole
from .format import FORMAT, ResultError, read
from .timer import environment

SAME = ("processor", "cores", "threads", "device", "python", "torch", "matroot")
"""What must agree between the environment of cases in one file."""


def path_of(folder: Path, settings: Settings) -> Path:
    """Where results with these settings are."""
    return folder / f"bench-{settings.device}-{settings.dtype}.json"


def start(settings: Settings) -> dict[str, Any]:
    """The content of a new file."""
    head = {"format": FORMAT, "command": "", "surroundings": environment(), "settings": asdict(settings)}
    return {**head, "cases": []}


def load(path: Path, settings: Settings) -> dict[str, Any] | None:
    """The content of a file to go on with; None if there is no file.

    ResultError if it cannot be read, is damaged, or comes from other settings, another machine or other versions.
    """
    if not path.exists():
        return None
    _, content = read(path)
    now = start(settings)
    for part, keys in (("settings", now["settings"]), ("surroundings", SAME)):
        for key in keys:
            if content[part].get(key) != now[part][key]:
                raise ResultError(
                    f"{path}: made with {part}.{key} = {content[part].get(key)!r}, now it is {now[part][key]!r}"
                )
    return content


def command_of(settings: Settings, cases: Sequence[Record]) -> str:
    """The command that measures these cases."""
    suites = " ".join(dict.fromkeys(case["suite"] for case in cases))
    quick = " --quick" if settings.quick else ""
    return f"matroot bench --suite {suites} --device {settings.device} --dtype {settings.dtype}{quick}"


def save(path: Path, content: dict[str, Any]) -> None:
    """Write the file, one case a line; ResultError naming the path if that fails, and what was there stays."""
    head = json.dumps({name: value for name, value in content.items() if name != "cases"}, indent=1, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(case, allow_nan=False) for case in content["cases"])
    try:
        write_whole(path, f'{head[:-2]},\n "cases": [\n{lines}\n ]\n}}\n'.encode())
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
