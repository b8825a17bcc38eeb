"""What is measured: cases, in groups that are timed together."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .._timer import one_line

Record = dict[str, Any]
"""A case as it is written to the result file."""

WRONG = "wrong answer: "
FAILED = "failed: "
LEFT_OUT = "left out: "


@dataclass(frozen=True)
class Settings:
    """What all cases of a result file have in common."""

    device: str = "cpu"
    dtype: str = "float32"
    quick: bool = False

    @property
    def rounds(self) -> int:
        """Turns of an entry that stays within its time budget."""
        return 3 if self.quick else 12

    @property
    def time_budget(self) -> float:
        """Seconds after which an entry gets no more turns than the fewest."""
        return 1.0

    @property
    def eps(self) -> float:
        """Of the dtype."""
        return torch.finfo(getattr(torch, self.dtype)).eps

    def place(self, matrices: Tensor) -> Tensor:
        """A float64 tensor in the dtype and on the device of the run."""
        return matrices.to(dtype=getattr(torch, self.dtype), device=self.device)


@dataclass(frozen=True)
class Outcome:
    """What was measured of one case.

    milliseconds: median, low, high, least; None where nothing was timed.
    errors: against the exact answer; None where there is none, NaN or Inf where the entry computed no number.
    bounds: what theory allows of some of the errors; an error that is larger, or no number, is a wrong answer.
    """

    milliseconds: Mapping[str, float] | None = None
    errors: Mapping[str, float | None] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)

    def verdict(self) -> str | None:
        """The note, or what is wrong."""
        wrong = [
            f"{name} error {error:.2e} above {self.bounds[name]:.2e}"
            for name, error in self.errors.items()
            if error is not None and name in self.bounds and not error <= self.bounds[name]
        ]
        return WRONG + ", ".join(wrong) if wrong else self.note


@dataclass(frozen=True)
class Case:
    """One contestant with one set of parameters; its name is unique in its suite."""

    suite: str
    contestant: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The contestant and its parameters, as in ``taylor degree=11 inverse=False``."""
        return " ".join((self.contestant, *(f"{key}={value}" for key, value in self.parameters.items())))

    def record(self, outcome: Outcome) -> Record:
        """The outcome as it is written: three digits, None for what is not finite."""
        return {
            "suite": self.suite,
            "case": self.name,
            "contestant": self.contestant,
            "parameters": dict(self.parameters),
            "milliseconds": None if outcome.milliseconds is None else dict(outcome.milliseconds),
            "errors": {name: rounded(error) for name, error in outcome.errors.items()},
            "values": {name: rounded(value) for name, value in outcome.values.items()},
            "note": outcome.verdict(),
        }


@dataclass(frozen=True)
class Group:
    """Cases that are timed together, and how to measure them.

    ``outcomes`` takes their names and yields each with its outcome as soon as it is finished, in any order.
    """

    cases: tuple[Case, ...]
    outcomes: Callable[[Sequence[str]], Iterator[tuple[str, Outcome]]]

    @classmethod
    def single(cls, case: Case, measure: Callable[[], Outcome]) -> "Group":
        """A group of one case."""
        return cls((case,), lambda names: iter([(case.name, measure())]))

    def measure(self) -> Iterator[Record]:
        """The record of each case when it is finished. An exception becomes the note of those that were not yet."""
        remaining = {case.name: case for case in self.cases}
        try:
            for name, outcome in self.outcomes(list(remaining)):
                yield remaining.pop(name).record(outcome)
        except Exception as error:
            for case in remaining.values():
                yield case.record(Outcome(note=FAILED + one_line(error)))


def rounded(value: Any) -> Any:
    """A number, or a list of them, as it is written: floats to three digits, None for what is not finite."""
    if isinstance(value, float):
        return float(f"{value:.2e}") if math.isfinite(value) else None
    return [rounded(v) for v in value] if isinstance(value, list) else value
