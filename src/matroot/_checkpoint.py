"""Checkpoints: dataclasses in files that are whole or not there, and loaded without running code."""

import os
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch

from ._files import whole
from ._terminal import CommandError

_State = TypeVar("_State")


class CheckpointError(CommandError):
    """What is wrong with a checkpoint."""


def save(path: Path, file_format: str, state: Any) -> None:
    """Write the fields of a dataclass, whole or not at all, also when power fails.

    CheckpointError if that cannot be; the earlier file stays.
    """
    content = {"format": file_format} | {field.name: getattr(state, field.name) for field in fields(state)}
    try:
        with whole(path) as file:
            torch.save(content, file)
        _sync_folder(path.parent)
    except (OSError, RuntimeError) as error:
        # For a full disk torch has an error of its own, raised after that of the system.
        reason = error.__context__ if isinstance(error.__context__, OSError) else error
        raise CheckpointError(f"cannot write {path}: {_first_line(reason)}") from error


def load(path: Path, file_format: str, kind: type[_State]) -> _State:
    """The dataclass of a file that :func:`save` wrote; CheckpointError if it is not one, or is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch reads tensors without looking at their checksums
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint {path}") from error
    except Exception as error:  # torch's errors for foreign files are of every kind
        raise CheckpointError(_unreadable(path, _first_line(error))) from error
    if damaged:
        raise CheckpointError(_unreadable(path, f"the checksum of {damaged} is wrong"))
    if not isinstance(content, dict) or content.pop("format", None) != file_format:
        raise CheckpointError(_unreadable(path, f"it is not of format {file_format!r}"))
    names = {field.name for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    if content.keys() != names:
        raise CheckpointError(_unreadable(path, f"it lacks {', '.join(sorted(names - content.keys())) or 'nothing'}"))
    return kind(**content)


def require_same_recipe(path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """CheckpointError that names the fields in which the recipe of a file is not the one wanted."""
    different = [
        f"{name} is {stored.get(name)!r} there and {wanted.get(name)!r} here"
        for name in sorted(stored.keys() | wanted.keys())
        if stored.get(name) != wanted.get(name)
    ]
    if different:
        raise CheckpointError(
            f"{path} is of another recipe, and cannot be resumed with this one: {'; '.join(different)}"
        )


def _unreadable(path: Path, reason: str) -> str:
    return f"{path} is damaged, or no checkpoint of a run: {reason}. It is left as it is; name another --out"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _sync_folder(folder: Path) -> None:
    """Make a rename last; some systems do not open folders, and need no such thing."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
