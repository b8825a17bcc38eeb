"""The folder of a run: ``run.json``, ``metrics.jsonl``, ``last.pt``, ``best.safetensors``, ``tensorboard/``."""

import json
import shlex
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from .._checkpoint import require_same_recipe
from .._environment import environment
from .._files import write_whole
from .._lock import locked
from .._terminal import CommandError
from . import checkpoint
from .checkpoint import Checkpoint
from .config import DataclassInstance, as_json, defaults
from .recipe import RUN_FORMAT, Recipe

FILES = ("run.json", "metrics.jsonl", "last.pt", "best.safetensors", "last.safetensors")
SAMPLES = "samples"
"""Pictures that a run of style exchange makes on its way, in its folder."""


@dataclass(frozen=True)
class Result:
    """What a run found; accuracies are fractions of the test split."""

    epochs: int
    best_accuracy: float
    best_epoch: int
    """The first of the best, counted from 1."""
    final_accuracy: float
    final_top5: float
    seconds: float
    """Of training alone."""
    step_ms: float
    """Median over epochs; the first, which warms up, is left out where there are others."""
    stand_in: str | None
    """What a small data set stands in for."""

    @classmethod
    def of(cls, history: Sequence[dict[str, Any]], stand_in: str | None) -> "Result":
        """The result of a run with these lines of ``metrics.jsonl``, at least one."""
        best, final = max(history, key=lambda row: row["test_accuracy"]), history[-1]
        return cls(
            epochs=len(history),
            best_accuracy=best["test_accuracy"],
            best_epoch=best["epoch"],
            final_accuracy=final["test_accuracy"],
            final_top5=final["test_top5"],
            seconds=sum(row["seconds"] for row in history),
            step_ms=statistics.median(row["step_ms"] for row in history[1:] or history),
            stand_in=stand_in,
        )


_Result = TypeVar("_Result", bound=DataclassInstance)


class RunFolder(Generic[_Result]):
    """The files of a run, read and written; CommandError, naming the file, for those that cannot be.

    recipe: a frozen dataclass, all of which JSON can hold. A field that a file lacks is younger, and had its default.
    kind: the dataclass of the run's result.
    """

    def __init__(self, path: Path, recipe: DataclassInstance, kind: type[_Result]) -> None:
        self.path = path
        self._kind = kind
        self._last = path / "last.pt"
        self._description = path / "run.json"
        self._metrics = path / "metrics.jsonl"
        self._recipe = as_json(recipe)
        self._defaults = defaults(recipe)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process trains in this folder meanwhile; CommandError if one does.

        What processes left that were killed while they wrote is removed.
        """
        with locked(self.path, *FILES, f"{SAMPLES}/*.png"):
            yield

    def require_new(self) -> None:
        """CommandError if there is a run already."""
        if self._description.exists() or self._last.exists():
            raise CommandError(f"{self.path} holds a run; --resume goes on with it, another --out starts one")

    def result(self) -> _Result | None:
        """The result of a run of this recipe that is finished; CommandError for a run of another recipe."""
        try:
            content = json.loads(self._description.read_bytes())
            stored, result = content["recipe"], content["result"]
            if not isinstance(stored, dict):
                raise TypeError("recipe must be an object")
            result = None if result is None else self._kind(**result)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(
                f"{self._description} is damaged, or no description of a run: {error!r}; "
                "without that file, --resume goes on from last.pt"
            ) from error
        require_same_recipe(self._description, self._defaults | stored, self._recipe)
        return result

    def load(self) -> Checkpoint | None:
        """The checkpoint; None if there is none yet, CommandError if it is damaged or of another recipe."""
        if not self._last.exists():
            return None
        found = checkpoint.load(self._last)
        require_same_recipe(self._last, self._defaults | found.recipe, self._recipe)
        return found

    def save(self, history: list[dict[str, Any]], state: dict[str, Any]) -> None:
        """Write the checkpoint of the last epoch in the history. state: all other fields of a Checkpoint."""
        checkpoint.save(self._last, Checkpoint(recipe=self._recipe, history=history, **state))

    def describe(self, result: _Result | None) -> None:
        """Write ``run.json``, of the command that this process runs."""
        self._write(
            self._description,
            {
                "format": RUN_FORMAT,
                "command": shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "matroot"), *sys.argv[1:]]),
                "environment": environment(),
                "recipe": self._recipe,
                "result": None if result is None else asdict(result),
            },
        )

    def write_metrics(self, history: Sequence[dict[str, Any]]) -> None:
        """Write ``metrics.jsonl``, a line an epoch."""
        self._write_bytes(self._metrics, "".join(json.dumps(row) + "\n" for row in history).encode())

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        self._write_bytes(path, (json.dumps(content, indent=2) + "\n").encode())

    def _write_bytes(self, path: Path, data: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from error


class Folder(RunFolder[Result]):
    """The files of a run that classifies."""

    def __init__(self, path: Path, recipe: Recipe) -> None:
        super().__init__(path, recipe, Result)
        self.best = path / "best.safetensors"
        self.tensorboard = path / "tensorboard"

    def can_restore_best(self, result: Result) -> bool:
        """Whether the best weights of a finished run are missing, and the checkpoint has them: they are the last."""
        return not self.best.exists() and self._last.exists() and result.best_epoch == result.epochs
