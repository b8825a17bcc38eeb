"""What the folder of a run says: its recipe, its epochs so far, and its result once it is finished."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._terminal import CommandError
from ..recipe import RUN_FORMAT


@dataclass(frozen=True)
class Curve:
    """Figures of every finished epoch; None where one is not finite."""

    epoch: tuple[int, ...] = ()
    test_accuracy: tuple[float | None, ...] = ()
    train_loss: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class RunState:
    """How far a run is."""

    recipe: dict[str, Any] | None = None
    """None where the run was not started."""
    environment: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    """None where it is not finished."""
    curve: Curve = field(default_factory=Curve)
    epoch_seconds: float | None = None
    """Mean of the training of an epoch; None before the first."""

    @property
    def epochs(self) -> int:
        """How many are finished."""
        return self.curve.epoch[-1] if self.curve.epoch else 0

    @property
    def best(self) -> float | None:
        """The best test accuracy so far."""
        return max((value for value in self.curve.test_accuracy if value is not None), default=None)


def read_run(folder: Path) -> RunState:
    """The state of a run; that of one that was not started where there is no folder.

    CommandError if its description is damaged or in another format.
    """
    description = _description(folder / "run.json")
    if description is None:
        return RunState()
    lines = _metrics(folder / "metrics.jsonl")
    epochs = tuple(lines)
    seconds = [value for line in lines.values() if (value := _number(line, "seconds")) is not None]
    return RunState(
        description["recipe"],
        description.get("environment"),
        description.get("result"),
        Curve(
            epochs,
            tuple(_number(lines[epoch], "test_accuracy") for epoch in epochs),
            tuple(_number(lines[epoch], "train_loss") for epoch in epochs),
        ),
        sum(seconds) / len(seconds) if seconds else None,
    )


def _description(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(f"{path}: not JSON, or cut off: {error}") from None
    if not isinstance(found, dict) or found.get("format") != RUN_FORMAT or not isinstance(found.get("recipe"), dict):
        raise CommandError(f'{path}: field format must be "{RUN_FORMAT}": this is no run folder of matroot train')
    return found


def _metrics(path: Path) -> dict[int, dict[str, Any]]:
    """By epoch, in order. A line that was cut off by a crash, and those after it, are not there yet."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = {}
    for line in text.splitlines():
        try:
            found = json.loads(line)
            lines[int(found["epoch"])] = found
        except (ValueError, TypeError, KeyError):
            break
    return dict(sorted(lines.items()))


def _number(line: dict[str, Any], key: str) -> float | None:
    value = line.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
