"""Findings about times and memory."""

from collections.abc import Sequence

from ...formatting import duration, number, ratio
from ..case import Case, find
from ..results import Results
from ..series import label_with_order
from .finding import (
    Finding,
    Pair,
    error_of,
    flatten,
    pairs,
    pairs_with_decomposition,
    pairs_with_root_errors,
    problem,
    time_of,
    timed,
    with_inverse,
)
from .sentences import compare_times, name, where
from .speedups import range_of_speedups, shape_text

COMPARISONS = (("mpa-lya", "ns"), ("mpa-lya", "svd"), ("mtp-lya", "ns"), ("mtp-lya", "svd"), ("ns", "svd"))
"""Pairs of presets whose times the paper compares."""

VALUE_ONLY = ("pi", "scipy")
"""Power iteration keeps one eigenpair, which is no root; SciPy has no gradient."""

SIMILAR_ERROR = 10
"""A solver is as exact as the default if its error is at most this many times as large."""


def speed(results: Results) -> list[Finding]:
    """The range over shapes, and the paper's method."""
    cases = timed(results.suite("speed"))
    found = range_of_speedups(pairs_with_decomposition(cases, "auto"), "torch.linalg.eigh")
    compared = pairs_with_decomposition(cases, "paper")
    if compared:
        faster = [shape_text(a) for a, b in compared if time_of(a) < time_of(b)]
        text = f"The method of the paper is faster than torch.linalg.eigh {where(faster, compared, 'the shapes')}."
        found.append(Finding(text, flatten(compared)))
    return found


def backward(results: Results) -> list[Finding]:
    """The Lyapunov solver against unrolled Newton-Schulz, its cost for the inverse root, and the least error."""
    cases = timed(results.suite("backward"))
    found = []
    lyapunov = {inverse: find(cases, "lyapunov", iterations=8, inverse=inverse) for inverse in (False, True)}
    for inverse, case in lyapunov.items():
        unrolled = find(with_inverse(cases, inverse), "newton-schulz unrolled", iterations=5)
        if case and unrolled:
            text = f"Lyapunov with 8 iterations, {'inverse root' if inverse else 'root'}: {duration(time_of(case))}, "
            text += compare_times(time_of(case), time_of(unrolled), "Newton-Schulz of 5 iterations, unrolled")
            found.append(Finding(f"{text}.", (case, unrolled)))
    root, inverse_root = lyapunov.values()
    if root and inverse_root:
        times = ratio(time_of(inverse_root) / time_of(root))
        text = f"With 8 iterations of Lyapunov the inverse root takes {times} times as long as the root."
        found.append(Finding(text, (root, inverse_root)))
    return found + _least_gradient_error(cases)


def _least_gradient_error(cases: Sequence[Case]) -> list[Finding]:
    measured = [case for case in cases if case.error("gradient") is not None]
    if not measured:
        return []
    best = min(measured, key=lambda case: error_of(case, "gradient"))
    error, time = number(error_of(best, "gradient")), duration(time_of(best))
    return [Finding(f"The most exact is {label_with_order(best)}: error {error} in {time}.", (best,))]


def scaling(results: Results, *, suite: str, parameter: str, quantity: str) -> list[Finding]:
    """Where in the range of a parameter one preset is faster than another, and where the default is the fastest."""
    cases = timed(results.suite(suite))
    return [
        *_default_is_fastest(cases, parameter, quantity),
        *(f for a, b in COMPARISONS for f in _faster_preset(pairs(cases, a, b), parameter, quantity)),
        *_smaller_error(cases, parameter, quantity),
    ]


def _faster_preset(compared: Sequence[Pair], parameter: str, quantity: str) -> list[Finding]:
    if not compared:
        return []
    preset, other = (name(case.contestant) for case in compared[0])
    faster = [_value(a, parameter) for a, b in compared if time_of(a) < time_of(b)]
    a, b = next((pair for pair in compared if pair[0].parameters.get(parameter) == 64), compared[-1])
    text = (
        f"{preset} is faster than {other} {where(faster, compared, quantity)}; for {quantity} {_value(a, parameter)}"
        f" it takes {duration(time_of(a))}, {compare_times(time_of(a), time_of(b), other)}."
    )
    return [Finding(text, (a, b))]


def _value(case: Case, parameter: str) -> str:
    """The value of a parameter, with the output where a suite measures several."""
    output = case.parameters.get("output")
    return f"{case.parameters.get(parameter)}{'' if output is None else f' ({output})'}"


def _smaller_error(cases: Sequence[Case], parameter: str, quantity: str) -> list[Finding]:
    compared = pairs_with_root_errors(cases)
    if not compared:
        return []
    smaller = [_value(a, parameter) for a, b in compared if error_of(a, "root") < error_of(b, "root")]
    text = f"MPA-Lya has a smaller error of the root than Newton-Schulz {where(smaller, compared, quantity)}."
    return [Finding(text, flatten(compared))]


def _default_is_fastest(cases: Sequence[Case], parameter: str, quantity: str) -> list[Finding]:
    complete = [case for case in cases if case.contestant not in VALUE_ONLY]
    fastest = []
    for auto in (case for case in cases if case.contestant == "auto"):
        same_problem = [case for case in complete if problem(case) == problem(auto)]
        fastest.append(min((case for case in same_problem if _as_exact(case, auto)), key=time_of))
    if not fastest:
        return []
    wins = [_value(case, parameter) for case in fastest if case.contestant == "auto"]
    text = "Of the solvers with at most ten times its error, the default is the fastest"
    return [Finding(f"{text} {where(wins, fastest, quantity)}.", tuple(fastest))]


def _as_exact(case: Case, auto: Case) -> bool:
    if case is not auto and (case.is_nan("root") or case.is_nan("inverse")):
        return False
    error, limit = case.error("root", "inverse"), auto.error("root", "inverse")
    return error is None or limit is None or error <= SIMILAR_ERROR * limit


def schemes(results: Results) -> list[Finding]:
    """Time and memory of the Lyapunov solver against the other backward passes."""
    cases = timed(results.suite("schemes"))
    lyapunov = find(cases, "lyapunov")
    others = [find(cases, contestant) for contestant in ("unrolled", "implicit")]
    return [_scheme(lyapunov, other) for other in others if lyapunov and other]


def _scheme(lyapunov: Case, other: Case) -> Finding:
    time = time_of(lyapunov)
    text = f"Lyapunov takes {duration(time)}, {compare_times(time, time_of(other), other.contestant)}"
    memory, other_memory = lyapunov.values.get("megabytes"), other.values.get("megabytes")
    if isinstance(memory, int | float) and isinstance(other_memory, int | float):
        text += f"; memory {number(memory)} MB against {number(other_memory)} MB"
    return Finding(f"{text}.", (lyapunov, other))
