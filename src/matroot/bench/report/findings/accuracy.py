"""Findings about errors."""

from collections.abc import Iterator

from ...formatting import duration, number, ratio
from ..case import Case, find
from ..results import SINGULAR, Results
from ..series import label_with_order
from .finding import Finding, error_of, flatten, pairs_with_root_errors, time_of, timed, with_inverse
from .sentences import EQUAL_WITHIN, listing, name, where

PAPER_RESIDUALS = {5: 0.3541, 6: 0.0410, 7: 7e-4, 8: 3e-7}
"""Iterations of the Lyapunov solver -> ||B - I||, in the paper."""

CONVERGED = 1e-5
"""||B - I|| that the paper reaches with 8 iterations."""

MAX_NAMED = 4
"""Exceptions that are named one by one."""


def scalar(results: Results) -> list[Finding]:
    """The largest errors of the approximants of sqrt(1 - z), and which is closest."""
    ranked = [(max(y for _, y in curve), case) for case in results.suite("scalar") if (curve := case.curve())]
    if not ranked:
        return []
    ranked.sort(key=lambda pair: pair[0])
    (least, best), (greatest, worst) = ranked[0], ranked[-1]
    text = (
        f"The largest error is least for {label_with_order(best)} ({number(least)})"
        f" and greatest for {label_with_order(worst)} ({number(greatest)})."
    )
    return [Finding(text, (best, worst)), *_closest_approximant([case for _, case in ranked])]


def _closest_approximant(cases: list[Case]) -> list[Finding]:
    """At how many of the common values of z a Padé approximant has the least error."""
    pade = [dict(case.curve()) for case in cases if case.contestant == "pade"]
    others = [dict(case.curve()) for case in cases if case.contestant != "pade"]
    if not pade or not others:
        return []
    common = set.intersection(*(set(curve) for curve in pade + others))
    if not common:
        return []
    closest = [z for z in common if min(curve[z] for curve in pade) < min(curve[z] for curve in others)]
    text = f"A Padé approximant is the closest at {len(closest)} of {len(common)} values of z."
    return [Finding(text, tuple(cases)), *_settings_of_the_paper(cases, common)]


def _settings_of_the_paper(cases: list[Case], common: set[float]) -> list[Finding]:
    """The same at the settings of the paper's experiments, with the errors at the largest z, where they differ most."""
    wanted = find(cases, "pade", degree=5), find(cases, "taylor", degree=11), find(cases, "newton-schulz", iterations=5)
    compared = tuple(case for case in wanted if case)
    if len(compared) < len(wanted):
        return []
    curves = [dict(case.curve()) for case in compared]
    pade, *others = curves
    closest = [z for z in common if pade[z] < min(curve[z] for curve in others)]
    last = max(common)
    pairs = zip(compared, curves, strict=True)
    errors = listing(f"{number(curve[last])} ({label_with_order(case)})" for case, curve in pairs)
    text = (
        f"Of the paper's own settings Padé [5,5] is the closest at {len(closest)} of {len(common)};"
        f" the errors at z = {number(last)} are {errors}."
    )
    return [Finding(text, compared)]


def forward(results: Results) -> list[Finding]:
    """Whether Padé is at once as fast and as exact as Newton-Schulz, and which method is the fastest."""
    found = []
    for inverse, subject in ((False, "Root"), (True, "Inverse root")):
        cases = with_inverse(timed(results.suite("forward")), inverse)
        found += _pade_against_newton_schulz(cases, subject, ("whitening", "mae") if inverse else ("mae",))
        if len(cases) > 1:
            fastest = min(cases, key=time_of)
            text = f"{subject}: the fastest is {label_with_order(fastest)}, with {duration(time_of(fastest))}."
            found.append(Finding(text, (fastest,)))
    return found


def _pade_against_newton_schulz(cases: list[Case], subject: str, errors: tuple[str, ...]) -> list[Finding]:
    with_errors = [case for case in cases if case.error(*errors) is not None]
    newton_schulz = [case for case in with_errors if case.contestant == "newton-schulz"]
    pade = [case for case in with_errors if case.contestant == "pade"]
    if not newton_schulz or not pade:
        return []
    dominated, dominating = [], []
    for case in newton_schulz:
        better = [p for p in pade if time_of(p) <= time_of(case) and error_of(p, *errors) <= error_of(case, *errors)]
        if better:
            dominated.append(case.parameters.get("iterations"))
            dominating.append(min(better, key=time_of))
    counts = where(dominated, newton_schulz, "the iteration counts")
    text = f"{subject}: a Padé approximant is both as fast and as exact as Newton-Schulz {counts}."
    return [Finding(text, (*newton_schulz, *dominating))]


def residuals(results: Results) -> list[Finding]:
    """The least residual of every method, and ||B - I|| of the Lyapunov solver next to the paper's."""
    cases = [(case, curve) for case in results.suite("residuals") if (curve := case.curve())]
    return [
        finding
        for case, curve in cases
        for finding in (_lyapunov_residual if case.contestant == "lyapunov" else _least_residual)(case, curve)
    ]


def _least_residual(case: Case, curve: list[tuple[float, float]]) -> Iterator[Finding]:
    steps, least = min(curve, key=lambda point: (point[1], point[0]))
    last = curve[-1][1]
    text = f"{label_with_order(case)}: the residual falls to {number(least)} after {steps:g} steps"
    yield Finding(f"{text} and ends at {number(last)}." if last > 2 * least else f"{text}.", (case,))


def _lyapunov_residual(case: Case, curve: list[tuple[float, float]]) -> Iterator[Finding]:
    measured = dict(curve)
    iterations = [k for k in PAPER_RESIDUALS if k in measured]
    if not iterations:
        return
    here = listing(number(measured[k]) for k in iterations)
    paper = listing(number(PAPER_RESIDUALS[k]) for k in iterations)
    converged = [k for k, residual in sorted(measured.items()) if residual < CONVERGED]
    since = f"from {converged[0]:g} iterations on" if converged else "nowhere"
    text = (
        f"Lyapunov, ‖B - I‖ after {listing(iterations)} iterations: {here}; in the paper {paper}."
        f" It is below 10⁻⁵ {since}; in the paper from 8."
    )
    yield Finding(text, (case,))


def pade(results: Results) -> list[Finding]:
    """The error of [3,3], [5,5] and [6,6]."""
    found = []
    for inverse, subject in ((False, "Root"), (True, "Inverse root")):
        cases = with_inverse(results.suite("pade"), inverse)
        measured = [(case, error) for case in cases if (error := next(iter(case.errors.values()), None)) is not None]
        errors = {case.parameters.get("degree"): (case, error) for case, error in measured}
        if not errors.keys() >= {3, 5, 6}:
            continue
        (case3, error3), (case5, error5), (case6, error6) = errors[3], errors[5], errors[6]
        text = (
            f"{subject}: the error is {number(error3)} with [3,3], {number(error5)} with [5,5]"
            f" and {number(error6)} with [6,6]"
        )
        if error6 and error5 > EQUAL_WITHIN * error6:
            text += f", {ratio(error5 / error6)} times less than with [5,5]"
        found.append(Finding(f"{text}.", (case3, case5, case6)))
    return found


def spectra(results: Results) -> list[Finding]:
    """The largest errors of every solver on regular and on singular matrices."""
    cases = results.suite("accuracy")
    regular = [case for case in cases if case.parameters.get("spectrum") != SINGULAR]
    singular = [case for case in cases if case.parameters.get("spectrum") == SINGULAR]
    conditions = [k for case in regular if isinstance(k := case.parameters.get("condition"), int | float)]
    matrices = f"matrices of condition up to {number(max(conditions))}" if conditions else "regular matrices"
    return [
        *_largest_errors(regular, "root", f"Largest error of the root on {matrices}"),
        *_largest_errors(regular, "root_gradient", "Of its gradient"),
        *_largest_errors(singular, "root", "Largest error of the root on singular matrices"),
        *_mpa_lya_against_newton_schulz(cases),
    ]


def _largest_errors(cases: list[Case], kind: str, subject: str) -> list[Finding]:
    """The largest error of every contestant; one with a case that has no finite error is named without a number."""
    largest: list[Case] = []
    not_finite: list[Case] = []
    for contestant in dict.fromkeys(case.contestant for case in cases):
        measured = [case for case in cases if case.contestant == contestant and kind in case.errors]
        failed = [case for case in measured if case.is_nan(kind)]
        if failed:
            not_finite.append(failed[0])
        elif measured:
            largest.append(max(measured, key=lambda case: error_of(case, kind)))
    largest.sort(key=lambda case: error_of(case, kind))
    parts = [listing(f"{name(case.contestant)} {number(error_of(case, kind))}" for case in largest)]
    if not_finite:
        parts.append(f"not always a number: {listing(name(case.contestant) for case in not_finite)}")
    text = "; ".join(part for part in parts if part)
    return [Finding(f"{subject}: {text}.", (*largest, *not_finite))] if text else []


def _mpa_lya_against_newton_schulz(cases: list[Case]) -> list[Finding]:
    compared = pairs_with_root_errors(cases)
    if not compared:
        return []
    exceptions = [a for a, b in compared if error_of(a, "root") >= error_of(b, "root")]
    closer = len(compared) - len(exceptions)
    text = f"MPA-Lya is closer to the root than Newton-Schulz for {closer} of {len(compared)} kinds"
    if exceptions:
        text += f"; not for {listing(_spectrum(case) for case in exceptions[:MAX_NAMED])}"
    if len(exceptions) > MAX_NAMED:
        text += f" and {len(exceptions) - MAX_NAMED} others"
    return [Finding(f"{text}.", flatten(compared))]


def _spectrum(case: Case) -> str:
    spectrum, condition = case.parameters.get("spectrum"), case.parameters.get("condition")
    return f"{spectrum} of condition {number(condition)}" if isinstance(condition, int | float) else str(spectrum)
