"""What the numbers say, suite by suite: sentences computed from the cases."""

from collections.abc import Callable
from functools import partial

from ..results import Results
from . import accuracy, gpu_suites, programs, timing
from .finding import Finding as Finding

FINDINGS: dict[str, Callable[[Results], list[Finding]]] = {
    "scalar": accuracy.scalar,
    "forward": accuracy.forward,
    "backward": timing.backward,
    "batch": partial(timing.scaling, suite="batch", parameter="batch", quantity="batch size"),
    "dimension": partial(timing.scaling, suite="dimension", parameter="n", quantity="n ="),
    "schemes": timing.schemes,
    "residuals": accuracy.residuals,
    "pade": accuracy.pade,
    "applications": partial(timing.scaling, suite="applications", parameter="shape", quantity="shape"),
    "accuracy": accuracy.spectra,
    "speed": timing.speed,
    "gpu": programs.gpu,
    "hard": partial(gpu_suites.compared, suite="hard"),
    "large": partial(gpu_suites.compared, suite="large"),
    "float64": partial(gpu_suites.compared, suite="float64"),
    "singular": partial(gpu_suites.compared, suite="singular"),
    "overhead": gpu_suites.overhead,
    "first-use": gpu_suites.first_use,
    "steps": gpu_suites.steps,
    "default": programs.default,
    "precision": programs.precision,
    "crossover": programs.crossover,
    "memory": programs.memory,
    "layers": programs.layers,
}


def suite_findings(suite: str, results: Results) -> list[Finding]:
    """What the numbers of a suite say; nothing for a suite this version does not know."""
    return FINDINGS[suite](results) if suite in FINDINGS else []
