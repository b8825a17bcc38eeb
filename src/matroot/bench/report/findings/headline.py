"""The sentences of the first screen: how fast, how exact, against whom."""

from collections.abc import Sequence

from ...batched_eigh import ONE_BY_ONE_ABOVE, is_batched_in
from ...formatting import ratio
from ..machines import Machine, Shape, timed_cases
from .finding import Finding, Pair, error_text, flatten, time_of, worst
from .sentences import BATCHED, EQUAL_WITHIN, batched_decomposition, listing

RIVALS = (
    (tuple(BATCHED), "{batched}, which has no root or gradient in it"),
    (("paper", "mpa-lya"), "the paper's method"),
    (("torch eigh", "eigh"), "an exact gradient through torch {torch}'s eigh{loop}"),
)
"""Of which the fastest counts, and what they are called; the honest comparison first."""
EXACT = {"torch eigh": ("torch eigh", "eigh"), "the paper's method": ("paper", "mpa-lya")}
"""Whose errors stand beside those of the default."""


def headline_findings(machine: Machine) -> list[Finding]:
    """A sentence for each rival with a time, and one about errors."""
    found = []
    for contestants, name in RIVALS:
        compared = timed_cases(machine.shapes, *contestants)
        if compared:
            found.append(_times(compared, _named(name, machine)))
    return [*found, *_errors(machine.shapes)]


def _named(name: str, machine: Machine) -> str:
    cases = [case for shape in machine.shapes for case in shape.cases.values()]
    loops = machine.file.settings["device"] != "cpu" and not is_batched_in(machine.torch)
    size = f"{ONE_BY_ONE_ABOVE} x {ONE_BY_ONE_ABOVE}"
    loop = f", which takes matrices above {size} one by one" if loops else ""
    return name.format(batched=batched_decomposition(cases), torch=machine.torch, loop=loop)


def _times(compared: Sequence[Pair], name: str) -> Finding:
    """``2.5 to 17 times`` as fast, and where it is not."""
    quotients = [time_of(other) / time_of(auto) for auto, other in compared]
    least, greatest = ratio(min(quotients)), ratio(max(quotients))
    span = least if least == greatest else f"{least} to {greatest}"
    slower = sum(quotient * EQUAL_WITHIN <= 1 for quotient in quotients)
    text = f"as fast as {name}; slower at {slower} of {len(compared)} shapes." if slower else f"as fast as {name}."
    return Finding(text, flatten(compared), f"{span} times")


def _errors(shapes: Sequence[Shape]) -> list[Finding]:
    """The largest error of root and gradient over the shapes; those of others beside it."""
    own = _largest(shapes, ("auto",))
    if "root" not in own:
        return []
    found = {name: _largest(shapes, contestants) for name, contestants in EXACT.items()}
    others = {name: errors for name, errors in found.items() if "root" in errors}
    compared = f"; {listing(f'{name} {_both(found)}' for name, found in others.items())}" if others else ""
    named = ("auto", *(contestant for contestants in EXACT.values() for contestant in contestants))
    cases = tuple(case for shape in shapes for name in named if (case := shape.cases.get(name)))
    text = f"is the largest error of a root{_of_gradient(own)}{compared}."
    return [Finding(text, cases, own["root"])]


def _largest(shapes: Sequence[Shape], contestants: Sequence[str]) -> dict[str, str]:
    """The largest error of each kind that was measured, as text."""
    cases = [case for shape in shapes for name in contestants if (case := shape.cases.get(name))]
    return {kind: error_text(case, kind) for kind in ("root", "gradient") if (case := worst(cases, kind))}


def _of_gradient(found: dict[str, str]) -> str:
    return f", {found['gradient']} of a gradient" if "gradient" in found else ""


def _both(found: dict[str, str]) -> str:
    return " and ".join(found.values())
