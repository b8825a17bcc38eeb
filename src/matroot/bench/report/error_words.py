"""What the numbers say about errors."""

from .claim import Claim, error_of, find, inverse_of, time_of
from .phrases import SAME, listed, number, ratio, which
from .results import SINGULAR, Case, Results

PAPERS_RESIDUALS = {5: 0.3541, 6: 0.0410, 7: 7e-4, 8: 3e-7}
"""||B - I|| after so many iterations, in the paper."""

NAMED = 4
"""Exceptions that are named one by one."""


def scalar(results: Results) -> list[Claim]:
    worst = [(max(y for _, y in curve), case) for case in results.suite("scalar") if (curve := case.curve())]
    if not worst:
        return []
    worst.sort(key=lambda pair: pair[0])
    (low, best), (high, last) = worst[0], worst[-1]
    text = f"The largest error is least for {best.case} ({number(low)}) and greatest for {last.case} ({number(high)})."
    return [Claim(text, (best, last)), *_closest([case for _, case in worst])]


def _closest(cases: list[Case]) -> list[Claim]:
    """How often Padé is ahead, where all were evaluated."""
    pade, others = ([dict(c.curve()) for c in cases if (c.contestant == "pade") == wanted] for wanted in (True, False))
    if not pade or not others:
        return []
    places = set.intersection(*(set(curve) for curve in pade + others))
    ahead = [z for z in places if min(curve[z] for curve in pade) < min(curve[z] for curve in others)]
    text = f"A Padé approximant is the closest at {len(ahead)} of {len(places)} values of z."
    return [Claim(text, tuple(cases)), *_as_in_the_paper(cases, places)] if places else []


def _as_in_the_paper(cases: list[Case], places: set[float]) -> list[Claim]:
    """The settings of its experiments alone, and the end of the range, where it says they differ most."""
    found = find(cases, "pade", degree=5), find(cases, "taylor", degree=11), find(cases, "newton-schulz", iterations=5)
    shown = tuple(case for case in found if case)
    if len(shown) < len(found):
        return []
    pade, *others = (dict(case.curve()) for case in shown)
    ahead = [z for z in places if pade[z] < min(curve[z] for curve in others)]
    last = max(places)
    ends = listed(f"{number(curve[last])} ({case.case})" for case, curve in zip(shown, (pade, *others), strict=True))
    text = f"Of the paper's own settings Padé [5,5] is the closest at {len(ahead)} of {len(places)}"
    return [Claim(f"{text}; the errors at z = {number(last)} are {ends}.", shown)]


def forward(results: Results) -> list[Claim]:
    claims = []
    for inverse, what in ((False, "Root"), (True, "Inverse root")):
        cases = [c for c in inverse_of(results.suite("forward"), inverse) if c.time]
        kind = ("whitening", "mae") if inverse else ("mae",)
        ns, pade = (
            [c for c in cases if c.contestant == k and c.error(*kind) is not None] for k in ("newton-schulz", "pade")
        )
        if ns and pade:
            below, by = [], []
            for case in ns:
                beaten = [
                    p for p in pade if time_of(p) <= time_of(case) and error_of(p, *kind) <= error_of(case, *kind)
                ]
                if beaten:
                    below.append(case.parameters.get("iterations"))
                    by.append(min(beaten, key=time_of))
            where = which(below, ns, "the iteration counts")
            text = f"{what}: a Padé approximant is both as fast and as exact as Newton-Schulz {where}."
            claims.append(Claim(text, (*ns, *by)))
        if len(cases) > 1:
            fastest = min(cases, key=time_of)
            text = f"{what}: the fastest is {fastest.case} with {number(time_of(fastest))} ms."
            claims.append(Claim(text, (fastest,)))
    return claims


def residuals(results: Results) -> list[Claim]:
    claims = []
    for case in results.suite("residuals"):
        if curve := case.curve():
            if case.contestant == "lyapunov":
                claims += _sign(case, dict(curve))
                continue
            steps, least = min(curve, key=lambda p: (p[1], p[0]))
            text = f"{case.case}: the residual falls to {number(least)} after {steps:g} steps"
            text += f" and ends at {number(curve[-1][1])}." if curve[-1][1] > 2 * least else "."
            claims.append(Claim(text, (case,)))
    return claims


def _sign(case: Case, found: dict[float, float]) -> list[Claim]:
    both = {k: (found[k], theirs) for k, theirs in PAPERS_RESIDUALS.items() if k in found}
    if not both:
        return []
    ours, theirs = (listed(number(pair[i]) for pair in both.values()) for i in (0, 1))
    text = f"Lyapunov, ‖B - I‖ after {listed(both)} iterations: {ours}; in the paper {theirs}."
    done = [k for k, residual in sorted(found.items()) if residual < 1e-5]
    text += f" It is below 10⁻⁵ {f'from {done[0]:g} iterations on' if done else 'nowhere'}; in the paper from 8."
    return [Claim(text, (case,))]


def pade(results: Results) -> list[Claim]:
    claims = []
    for inverse, what in ((False, "Root"), (True, "Inverse root")):
        cases = inverse_of(results.suite("pade"), inverse)
        found = {c.parameters.get("degree"): c for c in cases if c.errors and next(iter(c.errors.values())) is not None}
        if 5 in found and 6 in found and 3 in found:
            a, b, c = (next(iter(found[k].errors.values())) or 0.0 for k in (3, 5, 6))
            text = f"{what}: the error is {number(a)} with [3,3], {number(b)} with [5,5] and {number(c)} with [6,6]"
            text += f", {ratio(b / c)} times less than with [5,5]." if c and b > SAME * c else "."
            claims.append(Claim(text, (found[3], found[5], found[6])))
    return claims


def accuracy(results: Results) -> list[Claim]:
    cases = results.suite("accuracy")
    regular = [c for c in cases if c.parameters.get("spectrum") != SINGULAR]
    singular = [c for c in cases if c.parameters.get("spectrum") == SINGULAR]
    conditions = [k for c in regular if isinstance(k := c.parameters.get("condition"), int | float)]
    where = f"matrices of condition up to {number(max(conditions))}" if conditions else "regular matrices"
    return [
        *_worst(regular, "root", f"Largest error of the root on {where}"),
        *_worst(regular, "root_gradient", "Of its gradient"),
        *_worst(singular, "root", "Largest error of the root on singular matrices"),
        *_closer(cases),
    ]


def _worst(cases: list[Case], kind: str, what: str) -> list[Claim]:
    """Of every contestant; one that somewhere has no number has no largest error."""
    worst: list[tuple[float, Case]] = []
    none: list[Case] = []
    for contestant in dict.fromkeys(c.contestant for c in cases):
        mine = [c for c in cases if c.contestant == contestant and kind in c.errors]
        broken = [c for c in mine if c.errors[kind] is None]
        if broken:
            none.append(broken[0])
        elif mine:
            worst.append(max(((error_of(c, kind), c) for c in mine), key=lambda pair: pair[0]))
    worst.sort(key=lambda pair: pair[0])
    text = f"{what}: {listed(f'{c.contestant} {number(e)}' for e, c in worst)}"
    text += f"; not always a number: {listed(c.contestant for c in none)}" if none else ""
    return [Claim(f"{text}.", (*(c for _, c in worst), *none))] if worst else []


def _closer(cases: list[Case]) -> list[Claim]:
    pairs = [
        (ours, theirs)
        for ours in cases
        if ours.contestant == "mpa-lya" and ours.error("root") is not None
        if (theirs := find(cases, "ns", **ours.parameters)) and theirs.error("root") is not None
    ]
    if not pairs:
        return []
    other = [a for a, b in pairs if error_of(a, "root") >= error_of(b, "root")]
    text = f"MPA-Lya is closer to the root than Newton-Schulz for {len(pairs) - len(other)} of {len(pairs)} kinds"
    if other:
        names = [_kind(case) for case in other[:NAMED]]
        text += f"; not for {listed(names)}{f' and {len(other) - NAMED} others' if len(other) > NAMED else ''}"
    return [Claim(f"{text}.", tuple(case for pair in pairs for case in pair))]


def _kind(case: Case) -> str:
    condition = case.parameters.get("condition")
    at = f" of condition {number(condition)}" if isinstance(condition, int | float) else ""
    return f"{case.parameters.get('spectrum')}{at}"
