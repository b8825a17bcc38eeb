"""Contestants in turns: quick ones many times, slow ones a few."""

import time
from collections.abc import Callable, Mapping

from .timer import reason, seconds

FEWEST = 3
"""Turns of every contestant but those that take many times their patience: two then."""

BRIEF = 0.1
"""Seconds under which a call finds the caches as others left them: it is repeated, and only then measured."""


def take_turns(
    works: Mapping[str, Callable[[], object]], rounds: int, device: str, patience: float
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Seconds of every contestant, and why some have none.

    The order is reversed after each round, so that drift hits all alike. A first round, which compiles what there is to
    compile, does not count. Who has used up ``patience`` seconds stops after three turns, after two if that was four
    times over; who fails is out.
    """
    laps: dict[str, list[float]] = {name: [] for name in works}
    failures: dict[str, str] = {}
    spent = dict.fromkeys(works, 0.0)
    order = list(works)
    for turn in range(rounds + 1):
        for name in order:
            fewest = FEWEST if spent[name] < 4 * patience else FEWEST - 1
            if name in failures or (turn > fewest and spent[name] > patience):
                continue
            start = time.perf_counter()
            try:
                found = _turn(works[name], device)
            except Exception as error:
                failures[name] = reason(error)
                continue
            if turn:
                laps[name] += found
                spent[name] += time.perf_counter() - start
        order.reverse()
    return {name: times for name, times in laps.items() if name not in failures}, failures


def _turn(work: Callable[[], object], device: str) -> list[float]:
    once = seconds(work, device)
    return [once] if once >= BRIEF else [seconds(work, device) for _ in range(3)]
