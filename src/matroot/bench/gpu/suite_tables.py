"""The suites as tables: matroot and its peers side by side."""

import math
from collections.abc import Sequence
from typing import Any

from ..formatting import MISSING, scientific, three_digits
from ..text import table
from .baselines import LIBRARIES
from .compared import OURS, OURS_FORWARD, PEER, PEER_FORWARD
from .overhead import NOTHING
from .singular import OURS_ON_CPU

Result = dict[str, Any]


def show_compared(results: Sequence[Result]) -> None:
    """Times with their goals, then errors."""
    print("ms in a row, forward and backward (there and back) and forward alone; libraries: the decomposition alone")
    head = (
        "case", "there and back", "in a graph", "goal", "met", "torch eigh", "ratio",
        "forward", "torch eigh", *LIBRARIES, "best ratio",
    )  # fmt: skip
    print(table(head, [_times_row(r) for r in results]))
    print("\nrelative errors, of matroot also in units of rounding: u (sqrt n + sqrt k) for roots, u (sqrt n + k) else")
    head = ("case", "condition", *(f"{part}{what}" for part in PARTS for what in ("", ", units", ", torch eigh")))
    print(table(head, [_errors_row(r) for r in results if "rounding" in r]))
    for r in results:
        if "distance" in (found := r.get("errors", {}).get(OURS_FORWARD, {})):
            print(f"{r['case']}: {scientific(found['distance'])} from the result by decompositions")
    _show_notes(results)


PARTS = ("root", "inverse", "gradient")


def _times_row(r: Result) -> list[str]:
    own = OURS if OURS in r["milliseconds"] else OURS_FORWARD
    graph = r.get("graph_milliseconds", {}).get(own)
    time = graph["median"] if graph else _time(r, own)
    forward = _time(r, OURS_FORWARD)
    others = [t for name in (PEER_FORWARD, *LIBRARIES) if (t := _time(r, name)) is not None]
    return [
        r["case"],
        three_digits(_time(r, OURS)),
        three_digits(graph and graph["median"]),
        three_digits(r["goal_milliseconds"]),
        _met(time, r["goal_milliseconds"]),
        three_digits(_time(r, PEER)),
        three_digits(_ratio(_time(r, PEER), _time(r, OURS))),
        three_digits(forward),
        *(three_digits(_time(r, name)) for name in (PEER_FORWARD, *LIBRARIES)),
        three_digits(_ratio(min(others, default=None), forward)),
    ]


def _errors_row(r: Result) -> list[str]:
    ours, theirs = (r["errors"][name] for name in (OURS, PEER))
    cells = [r["case"], scientific(r["condition"])]
    for part in PARTS:
        units = _ratio(ours.get(part), r["rounding"].get(part))
        cells += [scientific(ours.get(part)), three_digits(units), scientific(theirs.get(part))]
    return cells


def show_first_use(results: Sequence[Result]) -> None:
    """Seconds of the first and second call, with an empty cache of kernels and with a filled one."""
    print("a forward and backward pass in a process of its own, seconds; 'on disk': another process compiled before")
    rows = []
    for r in results:
        empty, filled = (r["seconds"].get(cache, {}) for cache in ("empty", "filled"))
        first = empty.get("first")
        numbers = (first, r["goal_seconds"], empty.get("second"), filled.get("first"), empty.get("process"))
        rows.append([r["case"], *map(three_digits, numbers), _met(first, r["goal_seconds"])])
    print(table(("case", "first call", "goal", "second call", "first, on disk", "whole process", "met"), rows))
    _show_notes(results)


def show_singular(results: Sequence[Result]) -> None:
    """Errors of roots, and times."""
    print("relative errors of the root, and ms of a forward pass")
    names = (OURS_FORWARD, OURS_ON_CPU, PEER_FORWARD)
    rows = []
    for r in results:
        errors = [r["errors"].get(name, {}).get("root") for name in names]
        times = [_time(r, name) for name in (OURS_FORWARD, PEER_FORWARD)]
        own = [found["root"] for name in names[:2] if "root" in (found := r["errors"].get(name, {}))]
        # What is no number, which files write as null, meets no goal.
        met = _met(max((math.inf if e is None else e for e in own), default=None), r["goal_error"])
        rows.append([r["case"], *map(scientific, (*errors, r["goal_error"])), met, *map(three_digits, times)])
    print(table(("case", "matroot", OURS_ON_CPU, "torch eigh", "goal", "met", "matroot ms", "torch eigh ms"), rows))
    _show_notes(results)


def show_steps(results: Sequence[Result]) -> None:
    """Milliseconds of neighbouring sizes, and how much the worst step costs."""
    print("ms of a forward and backward pass for n - 1, n, n + 1, n + 2; the largest ratio of neighbours")
    rows = []
    for r in results:
        times = [r["milliseconds"].get(str(r["n"] + k)) for k in range(-1, 3)]
        ratio = r["largest_ratio"]
        rows.append([r["case"], *map(three_digits, (*times, ratio)), _met(ratio, r["goal_ratio"])])
    print(table(("case", "n - 1", "n", "n + 1", "n + 2", "ratio", "met"), rows))
    worst = max((r["largest_ratio"] for r in results if r["largest_ratio"] is not None), default=None)
    print(f"largest ratio of all: {three_digits(worst)}")
    _show_notes(results)


def show_overhead(results: Sequence[Result]) -> None:
    """Milliseconds of a call, and of an autograd Function that does nothing."""
    print("ms of a forward and backward pass, in a row")
    rows = []
    for r in results:
        time, goal = _time(r, OURS), r["goal_milliseconds"]
        rows.append([r["case"], *map(three_digits, (time, _time(r, NOTHING), goal)), _met(time, goal)])
    print(table(("case", "matroot", NOTHING, "goal", "met"), rows))
    _show_notes(results)


def _show_notes(results: Sequence[Result]) -> None:
    for r in results:
        for name, note in r["notes"].items():
            print(f"{r['case']}: {name}: {note}")


def _time(r: Result, name: str) -> float | None:
    """Median of calls in a row, if there is one."""
    found = r["milliseconds"].get(name)
    return found["back_to_back"]["median"] if found else None


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _met(found: float | None, goal: float | None) -> str:
    return MISSING if found is None or goal is None else "yes" if found <= goal else "no"
