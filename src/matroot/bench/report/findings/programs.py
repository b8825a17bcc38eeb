"""Findings of the programs beside ``matroot bench``."""

from collections.abc import Sequence
from typing import Any

from ...formatting import duration, number, ratio
from ..case import Case, find
from ..results import SINGULAR, Results
from .finding import Finding, error_text, pairs, problem, time_of, timed, worst
from .sentences import BATCHED, EQUAL_WITHIN, batched_decomposition, compare_times, listing, name
from .speedups import range_of_speedups, shape_text

DEFAULTS = ("minimax+smith", "minimax+krylov")
"""What the default runs where it does not decompose."""


def gpu(results: Results) -> list[Finding]:
    """The default against batched eigensolvers at every shape, and inside a CUDA graph."""
    cases = results.suite("gpu")
    compared = []
    for auto in (case for case in timed(cases) if case.contestant == "auto"):
        others = [case for one in BATCHED if (case := find(cases, one, **problem(auto))) and case.time]
        if others:
            compared.append((auto, min(others, key=time_of)))
    return [
        *range_of_speedups(compared, f"{batched_decomposition(cases)}, which has no root or gradient in it,"),
        *range_of_speedups(pairs(timed(cases), "auto", "paper"), "the paper's method"),
        *_graph(cases),
    ]


def default(results: Results) -> list[Finding]:
    """The default against a decomposition and against the paper's method."""
    cases = timed(results.suite("default"))
    return [
        *range_of_speedups(pairs(cases, "auto", "eigh"), "torch.linalg.eigh with the exact gradient"),
        *range_of_speedups(pairs(cases, "auto", "paper"), "the paper's method"),
    ]


def _graph(cases: Sequence[Case]) -> list[Finding]:
    """Where Python costs most."""
    inside = [case for case in timed(cases) if case.contestant == "auto" and case.values.get("in a CUDA graph")]
    if not inside:
        return []
    most = max(inside, key=lambda case: time_of(case) / case.values["in a CUDA graph"])
    graph = most.values["in a CUDA graph"]
    text = (
        f"Inside a CUDA graph nothing of Python is left: {shape_text(most)} takes {duration(graph)} instead of"
        f" {duration(time_of(most))}, {ratio(time_of(most) / graph)} times as fast."
    )
    return [Finding(text, (most,))]


def precision(results: Results) -> list[Finding]:
    """The largest error of the default in each dtype, and what others have on the same matrices."""
    found = []
    cases = [case for case in results.suite("precision") if case.parameters.get("spectrum") != SINGULAR]
    for dtype in dict.fromkeys(str(case.parameters.get("dtype")) for case in cases):
        own = [case for case in cases if case.parameters.get("dtype") == dtype]
        default_cases = [case for case in own if case.contestant == DEFAULTS[0]]
        for kind, what in (("root", "root"), ("inverse", "inverse root")):
            largest = worst(default_cases, kind)
            if largest:
                same = [case for case in own if problem(case) == problem(largest) and kind in case.errors]
                rest = (case for case in same if case is not largest)
                others = [f"{name(case.contestant)} {error_text(case, kind)}" for case in rest]
                subject = f"The largest error of {'an' if kind == 'inverse' else 'a'} {what} in {dtype} is"
                text = f"{subject} {error_text(largest, kind)}, with {_kind(largest)}"
                text += f"; there {listing(others)}" if others else ""
                found.append(Finding(f"{text}.", tuple(same)))
    return found


def _kind(case: Case) -> str:
    spectrum, condition = case.parameters.get("spectrum"), case.parameters.get("condition")
    return f"spectrum {spectrum} of condition {number(condition)}" if condition is not None else f"spectrum {spectrum}"


def crossover(results: Results) -> list[Finding]:
    """Where products are faster than a decomposition, for each dtype and spectrum."""
    cases = timed(results.suite("crossover"))
    found = []
    for dtype, condition in dict.fromkeys(_dtype_and_condition(case) for case in cases):
        own = [case for case in cases if _dtype_and_condition(case) == (dtype, condition)]
        compared = pairs(own, DEFAULTS[0], "eigh")
        spectrum = "for covariances" if condition is None else f"at condition {number(condition)}"
        subject = f"{name(DEFAULTS[0])} in {dtype} {spectrum}"
        found += range_of_speedups(compared, "torch.linalg.eigh with the exact gradient", subject)
    return found


def _dtype_and_condition(case: Case) -> tuple[Any, Any]:
    return case.parameters.get("dtype"), case.parameters.get("condition")


def memory(results: Results) -> list[Finding]:
    """The extra memory of the largest batch."""
    cases = [case for case in results.suite("memory") if case.values.get("megabytes") is not None]
    own = [case for case in cases if case.contestant == DEFAULTS[0]]
    if not own:
        return []
    largest = max(own, key=lambda case: case.parameters["batch"] * case.parameters["n"] ** 2)
    others = [case for case in cases if problem(case) == problem(largest) and case is not largest]
    listed = listing(f"{name(case.contestant)} {number(case.values['megabytes'])} MB" for case in others)
    text = f"For {shape_text(largest)} the default needs {number(largest.values['megabytes'])} MB beyond its results"
    return [Finding(f"{text}; {listed}." if others else f"{text}.", (largest, *others))]


def _beside(other: Case, first: Case) -> str:
    """What is faster than a network is a part of one, not a network that is as good."""
    if time_of(other) * EQUAL_WITHIN > time_of(first):
        return compare_times(time_of(other), time_of(first), first.contestant)
    share = ratio(time_of(other) / time_of(first))
    return f"{share} times as long as {first.contestant} ({duration(time_of(first))})"


def layers(results: Results) -> list[Finding]:
    """Of every network, each variant next to the first."""
    found = []
    cases = timed(results.suite("layers"))
    for network in dict.fromkeys(case.parameters.get("network") for case in cases):
        first, *others = (case for case in cases if case.parameters.get("network") == network)
        for other in others:
            text = f"{network}: {other.contestant} takes {duration(time_of(other))}, "
            text += _beside(other, first)
            inside = [time for case in (other, first) if (time := case.values.get("in a CUDA graph")) is not None]
            if len(inside) == 2:
                text += f"; inside a CUDA graph {listing(map(duration, inside))}"
            found.append(Finding(f"{text}.", (first, other)))
    return found
