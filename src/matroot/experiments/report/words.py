"""Sentences computed from numbers; each knows the cases it speaks of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .phrases import SAME, compared, listed, name, number, ratio, which
from .results import Case, Results

ERRORS = ("root", "gradient")


@dataclass(frozen=True)
class Claim:
    """A sentence and the cases whose numbers it states."""

    text: str
    cases: tuple[Case, ...]


def find(cases: Iterable[Case], contestant: str, **parameters: object) -> Case | None:
    return next(
        (
            case
            for case in cases
            if case.contestant == contestant and all(case.parameters.get(k) == v for k, v in parameters.items())
        ),
        None,
    )


def decomposition(cases: Sequence[Case], **parameters: object) -> Case | None:
    """The yardstick: eigh, with the exact gradient where there is a choice."""
    for contestant in ("eigh", "eigh (exact gradient)", "svd"):
        if found := find(cases, contestant, **parameters):
            return found
    return None


def summary(results: Results) -> list[Claim]:
    """How fast the default is, how exact, and compared with what."""
    claims = _default(results)
    accuracy = _accuracy(results)
    if not claims and not accuracy:
        text = "The file has no times of the default next to another solver: see the sections below."
        return [Claim(text, ())]
    return claims + accuracy[:1]


def _default(results: Results) -> list[Claim]:
    """From the suite that says it best."""
    for suite in ("speed", "dimension", "batch"):
        if claims := _race(results, suite):
            return claims
    return []


def _race(results: Results, suite: str) -> list[Claim]:
    cases = results.suite(suite)
    pairs = [
        (case, other)
        for case in cases
        if case.contestant == "auto" and case.time
        if (other := decomposition(cases, **_same(case))) and other.time
    ]
    return _pairs(pairs, cases) if pairs else []


def _shape(case: Case) -> str:
    batch, n = case.parameters.get("batch"), case.parameters.get("n", 64)
    return f"{'' if batch is None else f'{batch} '}{'matrix' if batch == 1 else 'matrices'} {n} x {n}"


def _pairs(pairs: list[tuple[Case, Case]], cases: list[Case]) -> list[Claim]:
    # The paper's size and batch, where they were measured.
    ours, theirs = max(pairs, key=lambda p: (p[0].parameters.get("n", 64) == 64, p[0].parameters.get("batch") == 64))
    time, other = _time(ours), _time(theirs)
    text = f"For {_shape(ours)}, the default takes {number(time)} ms, {compared(time, other, 'torch.linalg.eigh')}"
    paper = find(cases, "paper", **_same(ours))
    shown = (ours, theirs)
    if paper and paper.time:
        text += f" and {compared(time, paper.time, 'the method of the paper')}"
        shown = (ours, theirs, paper)
    claims = [Claim(text + ".", shown)]
    wrong = [f"{number(ours.errors[e] or 0.0)} in the {e}" for e in ERRORS if ours.errors.get(e) is not None]
    if wrong:
        text = f"Its error there is {listed(wrong)}"
        exact = [number(theirs.errors[e] or 0.0) for e in ERRORS if theirs.errors.get(e) is not None]
        text += f"; that of torch.linalg.eigh is {listed(exact)}" if exact else ""
        claims.append(Claim(text + ".", (ours, theirs)))
    if len(pairs) > 1:
        low, *_, high = sorted(pairs, key=_gain)
        slower = [_shape(a) for a, b in pairs if _time(a) >= SAME * _time(b)]
        text = (
            f"Over {len(pairs)} shapes, torch.linalg.eigh takes between {ratio(_gain(low))} ({_shape(low[0])})"
            f" and {ratio(_gain(high))} ({_shape(high[0])}) times as long as the default; the default is "
            + (f"slower for {'; '.join(slower)}." if slower else "nowhere slower.")
        )
        claims.append(Claim(text, (low[0], low[1], high[0], high[1])))
    return claims


def _gain(pair: tuple[Case, Case]) -> float:
    return _time(pair[1]) / _time(pair[0])


def _scalar(results: Results) -> list[Claim]:
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
    return [Claim(text, tuple(cases))] if places else []


def _forward(results: Results) -> list[Claim]:
    claims = []
    for inverse, what in ((False, "Root"), (True, "Inverse root")):
        cases = [c for c in results.suite("forward") if bool(c.parameters.get("inverse")) == inverse and c.time]
        kind = ("whitening", "mae") if inverse else ("mae",)
        ns, pade = (
            [c for c in cases if c.contestant == k and c.error(*kind) is not None] for k in ("newton-schulz", "pade")
        )
        if ns and pade:
            below, by = [], []
            for case in ns:
                beaten = [p for p in pade if _time(p) <= _time(case) and _error(p, kind) <= _error(case, kind)]
                if beaten:
                    below.append(case.parameters.get("iterations"))
                    by.append(min(beaten, key=_time))
            where = which(below, ns, "the iteration counts")
            text = f"{what}: a Padé approximant is both as fast and as exact as Newton-Schulz {where}."
            claims.append(Claim(text, (*ns, *by)))
        if len(cases) > 1:
            fastest = min(cases, key=_time)
            text = f"{what}: the fastest is {fastest.case} with {number(_time(fastest))} ms."
            claims.append(Claim(text, (fastest,)))
    return claims


def _time(case: Case) -> float:
    return case.time or 0.0


def _error(case: Case, kinds: tuple[str, ...]) -> float:
    return case.error(*kinds) or 0.0


def _backward(results: Results) -> list[Claim]:
    cases = [c for c in results.suite("backward") if c.time]
    claims = []
    for inverse, what in ((False, "root"), (True, "inverse root")):
        ours = find(cases, "lyapunov", iterations=8, inverse=inverse)
        five = [c for c in cases if c.contestant.startswith("newton-schulz") and c.parameters.get("iterations") == 5]
        theirs = next((c for c in five if bool(c.parameters.get("inverse")) == inverse), None)
        if ours and theirs:
            text = f"Lyapunov with 8 iterations, {what}: {number(_time(ours))} ms, "
            text += compared(_time(ours), _time(theirs), "Newton-Schulz of 5 iterations, unrolled") + "."
            claims.append(Claim(text, (ours, theirs)))
    timed = [c for c in cases if c.error("gradient") is not None]
    if timed:
        best = min(timed, key=lambda c: c.error("gradient") or 0.0)
        error, time = number(_error(best, ("gradient",))), number(_time(best))
        claims.append(Claim(f"The most exact is {best.case}: error {error} in {time} ms.", (best,)))
    return claims


def _against(suite: str, key: str, what: str) -> Callable[[Results], list[Claim]]:
    """Where one preset beats another, and who is fastest."""

    def claims(results: Results) -> list[Claim]:
        cases = [c for c in results.suite(suite) if c.time]
        found = []
        for ours in ("mpa-lya", "mtp-lya"):
            for theirs in ("ns", "svd"):
                pairs = [(a, b) for a in cases if a.contestant == ours and (b := find(cases, theirs, **_same(a)))]
                if pairs:
                    faster = [_at(a, key) for a, b in pairs if _time(a) < _time(b)]
                    text = f"{name(ours)} is faster than {name(theirs)} {which(faster, pairs, what)}"
                    one = next((p for p in pairs if p[0].parameters.get(key) == 64), pairs[-1])
                    text += f"; for {what} {_at(one[0], key)} it takes {number(_time(one[0]))} ms, "
                    text += f"{compared(_time(one[0]), _time(one[1]), name(theirs))}."
                    found.append(Claim(text, one))
        found += _closer(cases, key, what)
        return found + _fastest(cases, key, what)

    return claims


def _at(case: Case, key: str) -> str:
    """A place on the axis; shapes are measured for several outputs."""
    output = case.parameters.get("output")
    return f"{case.parameters.get(key)}{'' if output is None else f' ({output})'}"


def _fastest(cases: list[Case], key: str, what: str) -> list[Claim]:
    """Where the default is ahead of all that compute the same thing."""
    best = []
    for ours in (c for c in cases if c.contestant == "auto"):
        # Power iteration keeps one eigenpair: no root.
        rivals = [c for c in cases if c.contestant != "pi" and _same(c) == _same(ours)]
        best.append(min((c for c in rivals if _as_exact(c, ours)), key=_time))
    if not best:
        return []
    wins = [_at(c, key) for c in best if c.contestant == "auto"]
    text = "Of the solvers with at most ten times its error, the default is the fastest"
    return [Claim(f"{text} {which(wins, best, what)}.", tuple(best))]


def _as_exact(case: Case, ours: Case) -> bool:
    theirs, mine = case.error("root", "inverse"), ours.error("root", "inverse")
    return theirs is None or mine is None or theirs <= 10 * mine


def _same(case: Case) -> dict[str, object]:
    return {k: v for k, v in case.parameters.items() if k in ("batch", "n", "shape", "output")}


def _closer(cases: list[Case], key: str, what: str) -> list[Claim]:
    pairs = [
        (a, b)
        for a in cases
        if a.contestant == "mpa-lya" and a.error("root") is not None
        if (b := find(cases, "ns", **_same(a))) and b.error("root") is not None
    ]
    if not pairs:
        return []
    closer = [_at(a, key) for a, b in pairs if (a.error("root") or 0.0) < (b.error("root") or 0.0)]
    text = f"MPA-Lya has a smaller error of the root than Newton-Schulz {which(closer, pairs, what)}."
    return [Claim(text, tuple(c for pair in pairs for c in pair))]


def _schemes(results: Results) -> list[Claim]:
    cases = [c for c in results.suite("schemes") if c.time]
    ours = find(cases, "lyapunov")
    claims = []
    for contestant in ("unrolled", "implicit"):
        theirs = find(cases, contestant)
        if not (ours and theirs):
            continue
        text = f"Lyapunov takes {number(_time(ours))} ms, {compared(_time(ours), _time(theirs), contestant)}"
        mine, other = ours.values.get("megabytes"), theirs.values.get("megabytes")
        if isinstance(mine, int | float) and isinstance(other, int | float):
            text += f"; memory {number(mine)} MB against {number(other)} MB"
        claims.append(Claim(text + ".", (ours, theirs)))
    return claims


def _residuals(results: Results) -> list[Claim]:
    claims = []
    for case in results.suite("residuals"):
        if curve := case.curve():
            steps, least = min(curve, key=lambda p: (p[1], p[0]))
            text = f"{case.case}: the residual falls to {number(least)} after {steps:g} steps"
            text += f" and ends at {number(curve[-1][1])}." if curve[-1][1] > 2 * least else "."
            claims.append(Claim(text, (case,)))
    return claims


def _pade(results: Results) -> list[Claim]:
    claims = []
    for inverse, what in ((False, "Root"), (True, "Inverse root")):
        cases = [c for c in results.suite("pade") if bool(c.parameters.get("inverse")) == inverse]
        found = {c.parameters.get("degree"): c for c in cases if c.errors and next(iter(c.errors.values())) is not None}
        if 5 in found and 6 in found and 3 in found:
            a, b, c = (next(iter(found[k].errors.values())) or 0.0 for k in (3, 5, 6))
            text = f"{what}: the error is {number(a)} with [3,3], {number(b)} with [5,5] and {number(c)} with [6,6]"
            text += f", {ratio(b / c)} times less than with [5,5]." if c and b > SAME * c else "."
            claims.append(Claim(text, (found[3], found[5], found[6])))
    return claims


def _accuracy(results: Results) -> list[Claim]:
    cases = results.suite("accuracy")
    claims = []
    for kind, what in (("root", "root"), ("root_gradient", "gradient of the root")):
        worst: list[tuple[float, Case]] = []
        for contestant in dict.fromkeys(c.contestant for c in cases):
            mine = [(e, c) for c in cases if c.contestant == contestant and (e := c.error(kind)) is not None]
            if mine:
                worst.append(max(mine, key=lambda pair: pair[0]))
        if worst:
            worst.sort(key=lambda pair: pair[0])
            texts = [f"{c.contestant} {number(e)}" for e, c in worst]
            spectra = len({(c.parameters.get("spectrum"), c.parameters.get("condition")) for c in cases})
            text = f"Largest error of the {what} over {spectra} kinds of matrices: {listed(texts)}."
            claims.append(Claim(text, tuple(c for _, c in worst)))
    return claims


CLAIMS: dict[str, Callable[[Results], list[Claim]]] = {
    "scalar": _scalar,
    "forward": _forward,
    "backward": _backward,
    "batch": _against("batch", "batch", "batch size"),
    "dimension": _against("dimension", "n", "n ="),
    "schemes": _schemes,
    "residuals": _residuals,
    "pade": _pade,
    "applications": _against("applications", "shape", "shape"),
    "accuracy": _accuracy,
    # The rest is the summary.
    "speed": lambda results: _race(results, "speed")[-1:],
}


def claims(suite: str, results: Results) -> list[Claim]:
    """What the numbers of a suite say; nothing for a suite this version does not know."""
    return CLAIMS[suite](results) if suite in CLAIMS else []
