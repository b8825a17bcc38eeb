"""Goals on one H200, and the tables of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from .gpu_baselines import COMPILED, LIBRARIES
from .roofline import SPLIT, Ceilings

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
SHARE_OF_LIBRARIES = {(64, 512): 0.06}
"""Of the time of the best batched decomposition measured in the same run."""
ERROR = 1e-5
"""Of root and gradient."""
PEERS = ("minimax+krylov", COMPILED, "paper", "ns", "torch eigh", *LIBRARIES)


def judge(result: Result) -> Result:
    """The result with its goals, and which of them it meets; None where there is nothing to compare."""
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
    shape = (result["batch"], result["n"])
    python, graph = GOALS.get(shape, (None, None))
    if shape in SHARE_OF_LIBRARIES:
        times = [t for t in (_time(result, name, "back_to_back") for name in LIBRARIES) if t is not None]
        python = graph = SHARE_OF_LIBRARIES[shape] * min(times) if times else None
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


def show(results: Sequence[Result], ceilings: Ceilings) -> None:
    """Print the product against its goals, its peers, and what bounds it."""
    print("\nForward and backward of the root, float32, medians in us; goals are for calls in a row and for a graph")
    times = f"{'single':>8} {'in a row':>8} {'goal':>7} met {'graph':>8} {'goal':>7} met"
    print(f"{'batch x n':>12} {times}  error, of gradient")
    for r in results:
        goals, met = r["goal_microseconds"], r["met"]
        python = f"{_cell(_time(r, 'auto', 'single'), 8)} {_cell(_time(r, 'auto', 'back_to_back'), 8)}"
        python += f" {_cell(goals['with_python'], 7)} {_mark(met['back_to_back'])}"
        graph = f"{_cell(_graph(r, 'root'), 8)} {_cell(goals['in_a_graph'], 7)} {_mark(met['in_a_graph'])}"
        print(f"{_shape(r)} {python} {graph}  {_errors(r, 'auto')}{'' if met['error'] else '  too large'}")
    _show_peers(results)
    _show_bounds(results, ceilings)


def _show_peers(results: Sequence[Result]) -> None:
    print("\nPeers, us of calls in a row; cupy and jax forward only, the decomposition alone")
    print(f"{'batch x n':>12} " + " ".join(f"{name:>14}" for name in PEERS) + "  errors of paper; ns")
    for r in results:
        times = " ".join(_cell(_time(r, name, "back_to_back"), 14) for name in PEERS)
        print(f"{_shape(r)} {times}  {_errors(r, 'paper')}; {_errors(r, 'ns')}")
    for r in results:
        if "compile_seconds" in r:
            print(f"{_shape(r)} {COMPILED} took {r['compile_seconds']:.1f} s to compile")
        for name, note in r["notes"].items():
            print(f"{_shape(r)} {name}: {note}")


def _show_bounds(results: Sequence[Result], ceilings: Ceilings) -> None:
    bmm = ", ".join(f"{rate:.1f} (n = {n})" for n, rate in ceilings["bmm_teraflops"].items())
    bfloat16 = ceilings["bfloat16_teraflops"]
    copy, launch = ceilings["copy_terabytes_per_second"], ceilings["launch_in_a_graph_microseconds"]
    print(f"\nCeilings: bmm {bmm} TFLOP/s; bfloat16 {bfloat16:.0f}, float32 as {SPLIT} of it {bfloat16 / SPLIT:.0f}")
    print(f"copy {copy:.2f} TB/s; launch in a graph {_cell(launch, 0)} us; ", end="")
    print(f"autograd around nothing {ceilings['autograd_microseconds']:.1f} us")
    rates = f"{'TFLOP/s':>8} of bmm, of {SPLIT} bf16 {'TB/s':>6} of copy"
    print(f"{'batch x n':>12} {rates} inverse/root both/root  in a graph")
    for r in results:
        ratio: Mapping[str, float] = r.get("ratio_to_root", {})
        share = {name: f"{part:.0%}" for name, part in r.get("share_of_ceiling", {}).items()}
        flops = f"{_cell(r.get('teraflops_in_a_graph'), 8)} {share.get('bmm', '-'):>6} {share.get('bfloat16', '-'):>11}"
        copies = f"{_cell(r.get('terabytes_per_second_in_a_graph'), 6, 2)} {share.get('copy', '-'):>7}"
        others = f"{_cell(ratio.get('inverse root'), 12, 2)} {_cell(ratio.get('both roots'), 9, 2)}"
        print(f"{_shape(r)} {flops} {copies} {others}")
    for r in results:
        print(f"{_shape(r)} {r['bound']}")
    sources = {"{forward:g} + {backward:g} products, {source}".format(**r["products"]) for r in results}
    print("Rates count " + "; ".join(sorted(sources)) + ".")


def _shape(r: Result) -> str:
    return f"{r['batch']:>6} x {r['n']:<3}"


def _errors(r: Result, name: str) -> str:
    found = r["errors"].get(name, {})
    return ", ".join("-" if found.get(k) is None else f"{found[k]:.1e}" for k in ("root", "gradient"))


def _cell(value: float | None, width: int, digits: int = 1) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{digits}f}"


def _mark(met: bool | None) -> str:
    return {None: "  -", True: "yes", False: " no"}[met]
