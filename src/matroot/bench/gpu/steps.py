"""Steps of n: how much longer a forward and backward pass takes when n grows by one."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import matroot

from ..._timer import Work, one_line, time_in_graph, time_interleaved
from ..problems import forward_backward
from .problems import Problem

Result = dict[str, Any]

LINES = ((1000, 64), (1000, 96), (64, 128), (1000, 128), (16, 256), (4, 512), (1, 1024))
"""Batches and sizes where something changes, or might; one below to two above are measured."""
CONDITIONS = (None, 1e4)
"""Covariances of 2n samples, and a log spectrum."""
GOAL = 2.0
"""No time grows by more than this factor."""


def measure(device: str, quick: bool, backend: str = "auto") -> Iterator[Result]:
    """For each line and spectrum the milliseconds by n, in a CUDA graph where there is one, and the largest ratio."""
    for batch, line in ((2, 8),) if quick else LINES:
        for condition in CONDITIONS:
            sizes = range(line - 1, line + 3)
            problems = {n: Problem(batch, n, condition=condition) for n in sizes}
            works = {str(n): _step(problem, device, backend) for n, problem in problems.items()}
            result: Result = {"case": f"{problems[line].title}", "batch": batch, "n": line, "notes": {}}
            times = _times(works, device, quick, result["notes"])
            yield result | {"milliseconds": times, "goal_ratio": GOAL, "largest_ratio": largest_ratio(times)}


def _step(problem: Problem, device: str, backend: str) -> Work:
    A, G = problem.matrices(device)
    return partial(forward_backward, partial(matroot.sqrtm, backend=backend), A.requires_grad_(), G)


def _times(works: Mapping[str, Work], device: str, quick: bool, notes: dict[str, str]) -> dict[str, float]:
    """Medians of all in a graph, or of all in turns where one cannot be captured: they must be comparable."""
    if device == "cuda":
        try:
            return {n: round(1e3 * median(time_in_graph(work, 0.1)), 4) for n, work in works.items()}
        except Exception as error:
            notes["in a graph"] = one_line(error)
    timings = time_interleaved(works, 2 if quick else 8, device, time_budget=0.3, min_turns=1, back_to_back=True)
    notes |= timings.failures
    return {n: round(1e3 * median(found.back_to_back), 4) for n, found in timings.samples.items()}


def largest_ratio(times: Mapping[str, float]) -> float | None:
    """The largest growth from one size to the next; None if there are no two."""
    ordered = [times[n] for n in sorted(times, key=int)]
    return max((round(after / before, 3) for before, after in pairwise(ordered)), default=None)
