"""``last.pt``: all that a distillation needs to go on as if it had never stopped."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import _checkpoint

FORMAT = "matroot-distillation 1"


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
    """Write the file whole or not at all; CheckpointError, and the earlier one stays, if not."""
    _checkpoint.save(path, FORMAT, checkpoint)


def load(path: Path, recipe: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint of a file; None if there is none, CheckpointError if it is damaged or of another recipe."""
    if not path.exists():
        return None
    found = _checkpoint.load(path, FORMAT, Checkpoint)
    _checkpoint.require_same_recipe(path, found.recipe, recipe)
    return found
