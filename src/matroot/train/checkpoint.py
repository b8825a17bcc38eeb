"""``last.pt``: all that a run needs to go on after an epoch as if it had never stopped."""

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from .._terminal import CommandError

FORMAT = "matroot-checkpoint 1"


class CheckpointError(CommandError):
    """What is wrong with a checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """A run after an epoch. States name parameters as the network alone does, on the CPU and unsharded."""

    recipe: dict[str, Any]
    history: list[dict[str, Any]]
    """The lines of ``metrics.jsonl``."""
    network: dict[str, Any]
    average: dict[str, Any] | None
    """The network with averaged weights, where the recipe averages them."""
    optimizer: dict[str, Any]
    scaler: dict[str, Any] | None
    """Of the loss in float16."""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write the file whole or not at all, also when power fails; CheckpointError, and the earlier one stays, if not."""
    partial = path.with_name(f"{path.name}.partial")
    content = {"format": FORMAT} | {field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)}
    try:
        with open(partial, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError | RuntimeError):  # torch has its own error for a full disk
            raise CheckpointError(f"cannot write {path}: {_first_line(error)}") from error
        raise


def load(path: Path) -> Checkpoint:
    """The checkpoint of a file that :func:`save` wrote; CheckpointError if it is not one, or is damaged."""
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
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(_unreadable(path, f"it is not of format {FORMAT!r}"))
    names = {field.name for field in fields(Checkpoint)}
    if content.keys() != names:
        raise CheckpointError(_unreadable(path, f"it lacks {', '.join(sorted(names - content.keys())) or 'nothing'}"))
    return Checkpoint(**content)


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
