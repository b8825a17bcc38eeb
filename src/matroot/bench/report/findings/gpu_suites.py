"""Findings of the suites of ``python -m matroot.bench.gpu`` beside its table of shapes."""

from collections.abc import Sequence
from itertools import pairwise

from ...formatting import number, ratio
from ..case import Case, find
from ..results import Results
from .finding import Finding, error_text, problem, time_of, timed, worst
from .sentences import listing, name
from .speedups import range_of_speedups

FORWARD = "matroot forward"
DECOMPOSITIONS = ("torch eigh forward", "jax eigh", "cupy eigh")
DECOMPOSITION = "the fastest decomposition alone (torch, JAX or CuPy)"


def compared(results: Results, *, suite: str) -> list[Finding]:
    """Forward passes against the fastest decomposition, and the largest errors of roots."""
    cases = results.suite(suite)
    fastest = []
    # A metric has a distance in the place of a root.
    for own in (case for case in timed(cases) if case.contestant == FORWARD and "distance" not in case.errors):
        others = [case for one in DECOMPOSITIONS if (case := find(cases, one, **problem(own))) and case.time]
        if others:
            fastest.append((own, min(others, key=time_of)))
    # Of singular matrices it is the root by a decomposition that is timed.
    other = "the root by torch.linalg.eigh" if suite == "singular" else DECOMPOSITION
    return range_of_speedups(fastest, other, "the root of matroot") + _largest_errors(results, suite)


def _largest_errors(results: Results, suite: str) -> list[Finding]:
    """One of each dtype, which is named where there are several."""
    by_dtype: dict[str, list[Case]] = {}
    for case in results.suite(suite):
        if "root" in case.errors:
            by_dtype.setdefault(str(case.parameters.get("dtype")), []).append(case)
    return [_largest(cases, f" in {dtype}" if len(by_dtype) > 1 else "") for dtype, cases in by_dtype.items()]


def _largest(cases: Sequence[Case], where: str) -> Finding:
    contestants = dict.fromkeys(case.contestant for case in cases)
    found = (worst((case for case in cases if case.contestant == contestant), "root") for contestant in contestants)
    largest = [case for case in found if case]
    texts = (f"{name(case.contestant)} {error_text(case, 'root')}" for case in largest)
    return Finding(f"Largest error of a root{where}: {listing(texts)}.", tuple(largest))


def overhead(results: Results) -> list[Finding]:
    """What a call takes beside an autograd Function that does nothing."""
    found = []
    cases = [case for case in results.suite("overhead") if case.values.get("in a row") is not None]
    for own in (case for case in cases if case.contestant == "matroot"):
        nothing = find(cases, "empty Function", **problem(own))
        if nothing:
            times = [1e3 * case.values["in a row"] for case in (own, nothing)]
            text = f"Calls in a row of {own.parameters['case']} take {number(times[0])} µs each"
            found.append(Finding(f"{text}, those of an empty Function {number(times[1])} µs.", (own, nothing)))
    return found


def first_use(results: Results) -> list[Finding]:
    """The longest first call, and the same with compiled kernels."""
    cases = [case for case in results.suite("first-use") if case.values.get("seconds") is not None]
    first = [case for case in cases if case.contestant == "first call"]
    if not first:
        return []
    longest = max(first, key=lambda case: case.values["seconds"])
    text = (
        f"The first call of a process takes up to {number(longest.values['seconds'])} s ({longest.parameters['case']})"
    )
    again = find(cases, "first call, kernels on disk", **problem(longest))
    if again:
        text += f", {number(again.values['seconds'])} s with kernels on disk"
    return [Finding(f"{text}.", (longest, again) if again else (longest,))]


def steps(results: Results) -> list[Finding]:
    """The largest growth from one size to the next."""
    cases = [case for case in results.suite("steps") if case.values.get("milliseconds")]
    neighbours = [pair for pair in pairwise(cases) if len({case.parameters["case"] for case in pair}) == 1]
    if not neighbours:
        return []
    before, after = max(neighbours, key=lambda pair: pair[1].values["milliseconds"] / pair[0].values["milliseconds"])
    growth = ratio(after.values["milliseconds"] / before.values["milliseconds"])
    sizes = f"from n = {before.parameters['n']} to {after.parameters['n']}"
    text = f"The largest growth of a time from one n to the next is {growth}-fold"
    return [Finding(f"{text} ({after.parameters['case']}, {sizes}).", (before, after))]
