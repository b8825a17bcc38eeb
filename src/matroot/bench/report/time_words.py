"""What the numbers say about times and memory."""

from collections.abc import Callable

from .claim import Claim, decomposition, error_of, find, inverse_of, same, time_of
from .phrases import SAME, compared, listed, name, number, ratio, which
from .results import Case, Results

ERRORS = ("root", "gradient")
RIVALS = (("mpa-lya", "ns"), ("mpa-lya", "svd"), ("mtp-lya", "ns"), ("mtp-lya", "svd"), ("ns", "svd"))
"""Who is faster than whom in the paper's words, or not always."""


def default(results: Results) -> list[Claim]:
    """The default next to a decomposition, from the suite that says it best."""
    for suite in ("speed", "dimension", "batch"):
        if claims := race(results, suite):
            return claims
    return []


def race(results: Results, suite: str) -> list[Claim]:
    cases = results.suite(suite)
    pairs = [
        (case, other)
        for case in cases
        if case.contestant == "auto" and case.time
        if (other := decomposition(cases, **same(case))) and other.time
    ]
    return _pairs(pairs, cases) if pairs else []


def _shape(case: Case) -> str:
    batch, n = case.parameters.get("batch"), case.parameters.get("n", 64)
    return f"{'' if batch is None else f'{batch} '}{'matrix' if batch == 1 else 'matrices'} {n} x {n}"


def _pairs(pairs: list[tuple[Case, Case]], cases: list[Case]) -> list[Claim]:
    # The paper's size and batch, where they were measured.
    ours, theirs = max(pairs, key=lambda p: (p[0].parameters.get("n", 64) == 64, p[0].parameters.get("batch") == 64))
    time, other = time_of(ours), time_of(theirs)
    text = f"For {_shape(ours)}, the default takes {number(time)} ms, {compared(time, other, 'torch.linalg.eigh')}"
    paper = find(cases, "paper", **same(ours))
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
        slower = [_shape(a) for a, b in pairs if time_of(a) >= SAME * time_of(b)]
        text = (
            f"Over {len(pairs)} shapes, torch.linalg.eigh takes between {ratio(_gain(low))} ({_shape(low[0])})"
            f" and {ratio(_gain(high))} ({_shape(high[0])}) times as long as the default; the default is "
            + (f"slower for {'; '.join(slower)}." if slower else "nowhere slower.")
        )
        claims.append(Claim(text, (low[0], low[1], high[0], high[1])))
    return claims


def _gain(pair: tuple[Case, Case]) -> float:
    return time_of(pair[1]) / time_of(pair[0])


def speed(results: Results) -> list[Claim]:
    """The rest is the summary."""
    cases = [c for c in results.suite("speed") if c.time]
    pairs = [(a, b) for a in cases if a.contestant == "paper" and (b := decomposition(cases, **same(a)))]
    faster = [_shape(a) for a, b in pairs if time_of(a) < time_of(b)]
    text = f"The method of the paper is faster than torch.linalg.eigh {which(faster, pairs, 'the shapes')}."
    return race(results, "speed")[-1:] + ([Claim(text, tuple(c for p in pairs for c in p))] if pairs else [])


def backward(results: Results) -> list[Claim]:
    cases = [c for c in results.suite("backward") if c.time]
    claims = []
    for inverse, what in ((False, "root"), (True, "inverse root")):
        ours = find(cases, "lyapunov", iterations=8, inverse=inverse)
        theirs = find(inverse_of(cases, inverse), "newton-schulz unrolled", iterations=5)
        if ours and theirs:
            text = f"Lyapunov with 8 iterations, {what}: {number(time_of(ours))} ms, "
            text += compared(time_of(ours), time_of(theirs), "Newton-Schulz of 5 iterations, unrolled") + "."
            claims.append(Claim(text, (ours, theirs)))
    root, inverse = (find(cases, "lyapunov", iterations=8, inverse=wanted) for wanted in (False, True))
    if root and inverse:
        text = f"With 8 iterations of Lyapunov the inverse root takes {ratio(time_of(inverse) / time_of(root))} times"
        claims.append(Claim(f"{text} as long as the root.", (root, inverse)))
    known = [c for c in cases if c.error("gradient") is not None]
    if known:
        best = min(known, key=lambda c: error_of(c, "gradient"))
        error, time = number(error_of(best, "gradient")), number(time_of(best))
        claims.append(Claim(f"The most exact is {best.case}: error {error} in {time} ms.", (best,)))
    return claims


def against(suite: str, key: str, what: str) -> Callable[[Results], list[Claim]]:
    """Where one preset beats another, and who is fastest."""

    def claims(results: Results) -> list[Claim]:
        cases = [c for c in results.suite(suite) if c.time]
        found = []
        for ours, theirs in RIVALS:
            pairs = [(a, b) for a in cases if a.contestant == ours and (b := find(cases, theirs, **same(a)))]
            if pairs:
                faster = [_at(a, key) for a, b in pairs if time_of(a) < time_of(b)]
                text = f"{name(ours)} is faster than {name(theirs)} {which(faster, pairs, what)}"
                one = next((p for p in pairs if p[0].parameters.get(key) == 64), pairs[-1])
                text += f"; for {what} {_at(one[0], key)} it takes {number(time_of(one[0]))} ms, "
                text += f"{compared(time_of(one[0]), time_of(one[1]), name(theirs))}."
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
        # Power iteration keeps one eigenpair, no root; SciPy has no gradient.
        rivals = [c for c in cases if c.contestant not in ("pi", "scipy") and same(c) == same(ours)]
        best.append(min((c for c in rivals if _as_exact(c, ours)), key=time_of))
    if not best:
        return []
    wins = [_at(c, key) for c in best if c.contestant == "auto"]
    text = "Of the solvers with at most ten times its error, the default is the fastest"
    return [Claim(f"{text} {which(wins, best, what)}.", tuple(best))]


def _as_exact(case: Case, ours: Case) -> bool:
    theirs, mine = case.error("root", "inverse"), ours.error("root", "inverse")
    return theirs is None or mine is None or theirs <= 10 * mine


def _closer(cases: list[Case], key: str, what: str) -> list[Claim]:
    pairs = [
        (a, b)
        for a in cases
        if a.contestant == "mpa-lya" and a.error("root") is not None
        if (b := find(cases, "ns", **same(a))) and b.error("root") is not None
    ]
    if not pairs:
        return []
    closer = [_at(a, key) for a, b in pairs if error_of(a, "root") < error_of(b, "root")]
    text = f"MPA-Lya has a smaller error of the root than Newton-Schulz {which(closer, pairs, what)}."
    return [Claim(text, tuple(c for pair in pairs for c in pair))]


def schemes(results: Results) -> list[Claim]:
    cases = [c for c in results.suite("schemes") if c.time]
    ours = find(cases, "lyapunov")
    claims = []
    for contestant in ("unrolled", "implicit"):
        theirs = find(cases, contestant)
        if not (ours and theirs):
            continue
        text = f"Lyapunov takes {number(time_of(ours))} ms, {compared(time_of(ours), time_of(theirs), contestant)}"
        mine, other = ours.values.get("megabytes"), theirs.values.get("megabytes")
        if isinstance(mine, int | float) and isinstance(other, int | float):
            text += f"; memory {number(mine)} MB against {number(other)} MB"
        claims.append(Claim(text + ".", (ours, theirs)))
    return claims
