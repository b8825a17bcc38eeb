"""Result files of comparisons: read with every field checked, written whole or not at all."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..._files import write_whole
from ..._terminal import CommandError
from .run_state import Curve

FORMAT = "matroot-compare 1"
ACCURACIES = ("best_accuracy", "final_accuracy")


class CompareError(CommandError):
    """A result file that cannot be read or written; the message names file and field."""


@dataclass(frozen=True)
class RunResult:
    """One run as it stands: finished with a result, failed with a reason, or neither."""

    preset: str
    seed: int
    result: dict[str, Any] | None
    failure: str | None = None
    curve: Curve = field(default_factory=Curve)
    environment: dict[str, Any] | None = None


@dataclass(frozen=True)
class StepTime:
    """Milliseconds of a training step, alone on the device."""

    median: float
    low: float
    high: float
    mode: str
    """``graph`` or ``eager``."""
    root_share: float | None = None
    """The part of a step that is spent in the root and its gradient; None where that has no meaning."""

    @property
    def root_percent(self) -> str | None:
        """The share in percent, as text; 0 where noise has made it negative."""
        return None if self.root_share is None else f"{max(0.0, 100 * self.root_share):.1f}"


@dataclass(frozen=True)
class Timing:
    """Steps of all presets, timed in turns."""

    device: str
    steps: dict[str, StepTime]
    failures: dict[str, str] = field(default_factory=dict)
    """Why a preset has no time."""


@dataclass(frozen=True)
class Comparison:
    """A result file."""

    command: str
    environment: dict[str, Any]
    name: str
    """Of the recipe."""
    variant: str
    recipe: dict[str, Any]
    """All fields but preset and seed."""
    stand_in: str | None = None
    runs: tuple[RunResult, ...] = ()
    timing: Timing | None = None

    @property
    def file_name(self) -> str:
        return f"compare-{self.name}-{self.variant}-{self.recipe['dataset']}.json"

    @property
    def presets(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(run.preset for run in self.runs))

    def of(self, preset: str) -> list[RunResult]:
        """The runs of a preset."""
        return [run for run in self.runs if run.preset == preset]

    def with_run(self, new: RunResult) -> "Comparison":
        """The same with a run added, or in the place of what was known of it."""
        key = (new.preset, new.seed)
        if all((run.preset, run.seed) != key for run in self.runs):
            return replace(self, runs=(*self.runs, new))
        return replace(self, runs=tuple(new if (run.preset, run.seed) == key else run for run in self.runs))


def write(path: Path, comparison: Comparison) -> None:
    """Write a result file; CompareError if that fails, and the earlier file stays."""
    content = {"format": FORMAT, **asdict(comparison)}
    runs = content.pop("runs")
    head = json.dumps(content, indent=1, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(run, allow_nan=False) for run in runs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f'{head[:-2]},\n "runs": [\n{lines}\n ]\n}}\n'.encode())
    except OSError as error:
        raise CompareError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path) -> Comparison:
    """A checked result file; CompareError if it cannot be read or is not as the format has it."""
    try:
        document = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CompareError(f"{path}: not JSON, or cut off: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CompareError(f'{path}: field format must be "{FORMAT}": this is no result file of matroot compare')
    try:
        return _comparison(_Fields(document))
    except _WrongFieldError as wrong:
        raise CompareError(f"{path}: {wrong}") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


class _WrongFieldError(Exception):
    pass


class _Fields:
    """The fields of an object in a file, taken with a check of their kind."""

    def __init__(self, found: Any, at: str = "") -> None:
        if not isinstance(found, dict):
            raise _WrongFieldError(f"field {at} must be an object")
        self.found, self.at = found, f"{at}." if at else ""

    def text(self, key: str) -> str:
        return self._take(key, str, "a string")

    def text_or_null(self, key: str) -> str | None:
        return None if self.found.get(key) is None else self.text(key)

    def whole(self, key: str) -> int:
        return self._take(key, int, "a whole number")

    def object(self, key: str) -> dict[str, Any]:
        return self._take(key, dict, "an object")

    def object_or_null(self, key: str) -> dict[str, Any] | None:
        return None if self.found.get(key) is None else self.object(key)

    def list(self, key: str) -> list[Any]:
        return self._take(key, list, "a list")

    def number(self, key: str) -> float:
        return float(_number(self._take(key, int | float, "a number"), self.at + key))

    def number_or_null(self, key: str) -> float | None:
        return None if self.found.get(key) is None else self.number(key)

    def _take(self, key: str, kind: Any, wanted: str) -> Any:
        if key not in self.found:
            raise _WrongFieldError(f"field {self.at}{key} is missing")
        value = self.found[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _WrongFieldError(f"field {self.at}{key} must be {wanted}")
        return value


def _number(value: Any, at: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1e200 < value < 1e200:
        raise _WrongFieldError(f"field {at} must be a finite number")
    return value


def _comparison(fields: _Fields) -> Comparison:
    recipe = fields.object("recipe")
    for key in ("model", "dataset"):
        _Fields(recipe, "recipe").text(key)
    _Fields(recipe, "recipe").whole("epochs")
    timing = fields.object_or_null("timing")
    return Comparison(
        fields.text("command"),
        fields.object("environment"),
        fields.text("name"),
        fields.text("variant"),
        recipe,
        fields.text_or_null("stand_in"),
        _runs(fields.list("runs")),
        None if timing is None else _timing(_Fields(timing, "timing")),
    )


def _runs(found: Sequence[Any]) -> tuple[RunResult, ...]:
    runs: dict[tuple[str, int], RunResult] = {}
    for k, one in enumerate(found):
        run = _run(_Fields(one, f"runs[{k}]"), f"runs[{k}]")
        if (run.preset, run.seed) in runs:
            raise _WrongFieldError(f"field runs[{k}] repeats preset {run.preset!r} with seed {run.seed}")
        runs[run.preset, run.seed] = run
    return tuple(runs.values())


def _run(fields: _Fields, at: str) -> RunResult:
    result = fields.object_or_null("result")
    if result is not None:
        for key in ACCURACIES:
            if not 0 <= _Fields(result, f"{at}.result").number(key) <= 1:
                raise _WrongFieldError(f"field {at}.result.{key} must be between 0 and 1")
    return RunResult(
        fields.text("preset"),
        fields.whole("seed"),
        result,
        fields.text_or_null("failure"),
        _curve(_Fields(fields.object("curve"), f"{at}.curve"), f"{at}.curve"),
        fields.object_or_null("environment"),
    )


def _curve(fields: _Fields, at: str) -> Curve:
    lists = {key: fields.list(key) for key in ("epoch", "test_accuracy", "train_loss")}
    if len({len(values) for values in lists.values()}) > 1:
        raise _WrongFieldError(f"field {at} must have lists of one length: {', '.join(lists)}")
    numbers = {
        key: tuple(None if value is None else _number(value, f"{at}.{key}") for value in values)
        for key, values in lists.items()
    }
    epochs = tuple(epoch for epoch in lists["epoch"] if type(epoch) is int)
    if len(epochs) < len(lists["epoch"]) or not all(map(math.isfinite, epochs)):
        raise _WrongFieldError(f"field {at}.epoch must be a list of whole numbers")
    return Curve(epochs, numbers["test_accuracy"], numbers["train_loss"])


def _timing(fields: _Fields) -> Timing:
    steps = {}
    for preset, one in fields.object("steps").items():
        step = _Fields(one, f"timing.steps.{preset}")
        times = [step.number(key) for key in ("median", "low", "high")]
        if min(times) <= 0:
            raise _WrongFieldError(f"field timing.steps.{preset} must have times above 0")
        steps[preset] = StepTime(times[0], times[1], times[2], step.text("mode"), step.number_or_null("root_share"))
    failures = _Fields(fields.object("failures"), "timing.failures")
    return Timing(fields.text("device"), steps, {preset: failures.text(preset) for preset in failures.found})
