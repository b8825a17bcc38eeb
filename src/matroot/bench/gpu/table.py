"""Goals on one H200, and the tables of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..formatting import MISSING, scientific, three_digits
from ..text import shape, table
from .baselines import COMPILED, LIBRARIES
from .roofline import SPLIT, Roofline

Result = dict[str, Any]

GOALS = {
    (1, 64): (60, 35),
    (64, 48): (60, 35),
    (10, 64): (60, 35),
    (16, 128): (120, 90),
    (4, 256): (400, 400),
    (256, 256): (2500, 2500),
    (1024, 64): (170, 170),
    (10000, 64): (1500, 1500),
    (10000, 32): (250, 250),
    (10000, 16): (60, 60),
}
"""Microseconds with Python, calls back to back, and in a CUDA graph."""
SHARE_OF_LIBRARIES = {(64, 512): 0.05}
"""Of the time of the best batched decomposition measured in the same run."""
ERROR = 1e-5
"""Of root and gradient."""
BASELINES = ("minimax+krylov", COMPILED, "paper", "ns", "torch eigh", *LIBRARIES)


def with_goals(result: Result) -> Result:
    """The result with its goals, and which of them it reaches; None where there is nothing to compare."""
    goals = _goals(result)
    errors = result["errors"].get("auto", {})
    met = {
        "single": _within(_time(result, "auto", "single"), goals["with_python"]),
        "back_to_back": _within(_time(result, "auto", "back_to_back"), goals["with_python"]),
        "in_a_graph": _within(_graph(result, "root"), goals["in_a_graph"]),
        "error": all(errors.get(kind) is not None and errors[kind] <= ERROR for kind in ("root", "gradient")),
    }
    return result | {"goal_microseconds": goals, "met": met}


def _goals(result: Result) -> dict[str, float | None]:
    key = (result["batch"], result["n"])
    python, graph = GOALS.get(key, (None, None))
    if key in SHARE_OF_LIBRARIES:
        times = [t for t in (_time(result, name, "back_to_back") for name in LIBRARIES) if t is not None]
        python = graph = SHARE_OF_LIBRARIES[key] * min(times) if times else None
    return {"with_python": python, "in_a_graph": graph}


def _within(time: float | None, goal: float | None) -> bool | None:
    return None if time is None or goal is None else time <= goal


def _time(result: Result, name: str, kind: str) -> float | None:
    """Median in microseconds, if there is one."""
    found = result["milliseconds"].get(name)
    return 1e3 * found[kind]["median"] if found else None


def _graph(result: Result, name: str) -> float | None:
    found = result["graph_milliseconds"].get(name)
    return 1e3 * found["median"] if found else None


def show(results: Sequence[Result], roofline: Roofline) -> None:
    """Print matroot against its goals, the baselines, and what limits it."""
    print("\nForward and backward of the root, float32, medians in us; goals are for calls in a row and for a graph")
    head = ("batch x n", "single", "in a row", "goal", "met", "graph", "goal", "met", "error", "of gradient", "")
    print(table(head, [_goal_row(r) for r in results]))
    _show_baselines(results)
    _show_limits(results, roofline)


def _goal_row(r: Result) -> list[str]:
    goals, met = r["goal_microseconds"], r["met"]
    return [
        _shape(r),
        three_digits(_time(r, "auto", "single")),
        three_digits(_time(r, "auto", "back_to_back")),
        three_digits(goals["with_python"]),
        _yes_no(met["back_to_back"]),
        three_digits(_graph(r, "root")),
        three_digits(goals["in_a_graph"]),
        _yes_no(met["in_a_graph"]),
        *_errors(r, "auto"),
        "" if met["error"] else "too large",
    ]


def _show_baselines(results: Sequence[Result]) -> None:
    print("\nBaselines, us of calls in a row; cupy and jax forward only, the decomposition alone")
    head = ("batch x n", *BASELINES, "error of paper", "gradient", "error of ns", "gradient")
    print(
        table(
            head,
            [
                [
                    _shape(r),
                    *(three_digits(_time(r, name, "back_to_back")) for name in BASELINES),
                    *_errors(r, "paper"),
                    *_errors(r, "ns"),
                ]
                for r in results
            ],
        )
    )
    for r in results:
        if "compile_seconds" in r:
            print(f"{_shape(r)}: {COMPILED} took {r['compile_seconds']:.1f} s to compile")
        for name, note in r["notes"].items():
            print(f"{_shape(r)}: {name}: {note}")


def _show_limits(results: Sequence[Result], roofline: Roofline) -> None:
    bmm = ", ".join(f"{three_digits(rate)} (n = {n})" for n, rate in roofline["bmm_teraflops"].items())
    bfloat16 = roofline["bfloat16_teraflops"]
    split = f"bfloat16 {three_digits(bfloat16)}, float32 as {SPLIT} of it {three_digits(bfloat16 / SPLIT)}"
    print(f"\nRoofline: bmm {bmm} TFLOP/s; {split}")
    print(
        f"copy {three_digits(roofline['copy_terabytes_per_second'])} TB/s; "
        f"launch in a graph {three_digits(roofline['launch_in_a_graph_microseconds'])} us; "
        f"autograd around nothing {three_digits(roofline['autograd_microseconds'])} us"
    )
    head = ("batch x n", "TFLOP/s", "of bmm", f"of {SPLIT} bf16", "TB/s", "of copy", "inverse/root", "both/root")
    print(table(head, [_rate_row(r) for r in results]))
    for r in results:
        print(f"{_shape(r)}: {r['bound']}")
    sources = {"{forward:g} + {backward:g} products, {source}".format(**r["products"]) for r in results}
    print("Rates count " + "; ".join(sorted(sources)) + ".")


def _rate_row(r: Result) -> list[str]:
    ratio: Mapping[str, float] = r.get("ratio_to_root", {})
    share = {name: f"{part:.0%}" for name, part in r.get("share_of_ceiling", {}).items()}
    return [
        _shape(r),
        three_digits(r.get("teraflops_in_a_graph")),
        share.get("bmm", MISSING),
        share.get("bfloat16", MISSING),
        three_digits(r.get("terabytes_per_second_in_a_graph")),
        share.get("copy", MISSING),
        three_digits(ratio.get("inverse root")),
        three_digits(ratio.get("both roots")),
    ]


def _shape(r: Result) -> str:
    return shape(r["batch"], r["n"])


def _errors(r: Result, name: str) -> list[str]:
    found = r["errors"].get(name, {})
    return [scientific(found.get(kind)) for kind in ("root", "gradient")]


def _yes_no(met: bool | None) -> str:
    return {None: MISSING, True: "yes", False: "no"}[met]
