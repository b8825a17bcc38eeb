"""How much faster the default is than another, over many shapes."""

from collections.abc import Sequence

from ...formatting import ratio
from ..case import Case
from .finding import Finding, Pair, flatten, time_of
from .sentences import EQUAL_WITHIN, listing

MAX_NAMED = 4
"""Shapes that are named one by one."""


def range_of_speedups(compared: Sequence[Pair], name: str, subject: str = "the default") -> list[Finding]:
    """How many times as long another takes, the least and the greatest, and where the subject is slower."""
    if len(compared) < 2:
        return []
    least, *_, greatest = sorted(compared, key=speedup)
    slower = [shape_text(a) for a, b in compared if time_of(a) >= EQUAL_WITHIN * time_of(b)]
    listed = listing(slower) if len(slower) <= MAX_NAMED else f"{len(slower)} of them"
    text = (
        f"Over {len(compared)} shapes, {name} takes between {ratio(speedup(least))} ({shape_text(least[0])})"
        f" and {ratio(speedup(greatest))} ({shape_text(greatest[0])}) times as long as {subject};"
        f" {subject} is {f'slower for {listed}' if slower else 'nowhere slower'}."
    )
    return [Finding(text, flatten((least, greatest)))]


def speedup(pair: Pair) -> float:
    return time_of(pair[1]) / time_of(pair[0])


def shape_text(case: Case) -> str:
    """``64 matrices 48 x 48``."""
    batch, n = case.parameters.get("batch"), case.parameters.get("n")
    return f"{'' if batch is None else f'{batch} '}{'matrix' if batch == 1 else 'matrices'} {n} x {n}"
