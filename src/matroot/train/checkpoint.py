"""``last.pt``: all that a run needs to go on after an epoch as if it had never stopped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _checkpoint

FORMAT = "matroot-checkpoint 1"


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
    """Write the file whole or not at all; CheckpointError, and the earlier one stays, if not."""
    _checkpoint.save(path, FORMAT, checkpoint)


def load(path: Path) -> Checkpoint:
    """The checkpoint of a file that :func:`save` wrote; CheckpointError if it is not one, or is damaged."""
    return _checkpoint.load(path, FORMAT, Checkpoint)
