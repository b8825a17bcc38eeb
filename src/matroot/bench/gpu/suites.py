"""The suites beside the table of shapes, by name: what matrices outside the comfortable middle cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import first_use, frechet, overhead, singular, steps, suite_tables
from .compared import measure_problems
from .problems import HARD, LARGE, WIDE

Result = dict[str, Any]


@dataclass(frozen=True)
class Suite:
    """``measure(device, quick, backend)`` yields results as they come, ``show`` prints all of them."""

    title: str
    measure: Callable[[str, bool, str], Iterator[Result]]
    show: Callable[[Sequence[Result]], None]


def _wide(device: str, quick: bool, backend: str) -> Iterator[Result]:
    yield from measure_problems(WIDE, device, quick, backend)
    yield frechet.measure(device, quick)


SUITES = {
    "hard": Suite("ill-conditioned batches", partial(measure_problems, HARD), suite_tables.show_compared),
    "large": Suite("one large matrix", partial(measure_problems, LARGE), suite_tables.show_compared),
    "float64": Suite("float64 and complex, and a metric", _wide, suite_tables.show_compared),
    "first-use": Suite("the first call of a process, in seconds", first_use.measure, suite_tables.show_first_use),
    "singular": Suite("roots of singular matrices", singular.measure, suite_tables.show_singular),
    "overhead": Suite("a call beside its kernels", overhead.measure, suite_tables.show_overhead),
    "steps": Suite("when n grows by one", steps.measure, suite_tables.show_steps),
}
