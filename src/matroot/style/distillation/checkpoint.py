"""``last.pt``: all that a distillation needs to go on as if it had never stopped."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from ..._files import write_whole
from ..._terminal import CommandError

FORMAT = "matroot-distillation 1"


class CheckpointError(CommandError):
    """What is wrong with a checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """A distillation after some steps."""

    recipe: dict[str, Any]
    state: dict[str, Any]
    """Of the Distiller."""
    history: list[dict[str, Any]]
    """The lines of ``metrics.jsonl``."""
    seconds: float
    """Of training so far, over all calls."""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write the file whole or not at all; OSError if it cannot be, and the earlier one stays."""
    content = {"format": FORMAT} | {field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)}
    data = io.BytesIO()
    torch.save(content, data)
    write_whole(path, data.getvalue())


def load(path: Path, recipe: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint of a file; None if there is none.

    CheckpointError if it is damaged, something else, or of another recipe.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except Exception as error:  # torch's errors for foreign files are of every kind
        raise CheckpointError(f"{path} is no checkpoint: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of a distillation, of format {FORMAT!r}")
    found = Checkpoint(**content)
    different = [
        f"{name} is {found.recipe.get(name)!r} there and {value!r} here"
        for name, value in recipe.items()
        if found.recipe.get(name) != value
    ]
    if different:
        raise CheckpointError(f"{path} is of another recipe, and cannot be resumed with this: {'; '.join(different)}")
    return found
