"""Figures made from the committed results of ``benchmarks/results``."""

import json
from pathlib import Path

from matplotlib import pyplot as plt
from style import FOUR, INK, ONE, SIX, THREE, TWO

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
SHAPES = [(1, 64), (64, 48), (16, 128), (10000, 64)]
_EIGH = "torch.linalg.eigh"


def times():
    """Root and gradient: milliseconds on two machines, as bars on a logarithmic axis."""
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 4.2), sharey=True)
    cpu, gpu = _read("bench-cpu-float32"), _read("gpu-nvidia-h200")
    cases = [case for case in cpu["cases"] if case["suite"] == "speed"]
    on_cpu = {
        (case["contestant"], case["parameters"]["batch"], case["parameters"]["n"]): case["milliseconds"]["median"]
        for case in cases
        if case["milliseconds"] is not None
    }
    on_gpu = {
        (name, case["batch"], case["n"]): measured["single"]["median"]
        for case in gpu["results"]
        for name, measured in case["milliseconds"].items()
    }
    machine = cpu["surroundings"]
    title = f"{machine['processor']}, {machine['threads']} threads, torch {machine['torch'].partition('+')[0]}"
    solvers = {"auto": ("matroot", ONE), "paper": ("the paper's MPA", TWO), "eigh": (_EIGH, SIX)}
    _bars(axes[0], title, solvers, on_cpu)
    machine = gpu["surroundings"]
    title = f"{machine['device']}, torch {machine['torch'].partition('+')[0]}"
    batched = f"batched eigh, value alone (JAX {gpu['versions']['jax']})"
    solvers = {
        "auto": solvers["auto"],
        "paper": solvers["paper"],
        "jax eigh": (batched, FOUR),
        "torch eigh": (_EIGH, SIX),
    }
    _bars(axes[1], title, solvers, on_gpu)
    axes[0].set_yticks(range(len(SHAPES)), [rf"{batch:,} $\times$ {n}²" for batch, n in SHAPES])
    axes[0].invert_yaxis()
    handles = {text.get_label(): text for ax in axes for text in ax.containers}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize=9)
    return figure


def _bars(ax, title: str, solvers: dict[str, tuple[str, str]], measured: dict[tuple[str, int, int], float]) -> None:
    height, largest = 0.8 / len(solvers), 0.0
    smallest = min(measured.values())
    for place, (name, (label, colour)) in enumerate(solvers.items()):
        known = {row: measured[name, *shape] for row, shape in enumerate(SHAPES) if (name, *shape) in measured}
        rows = [row + (place - (len(solvers) - 1) / 2) * height for row in known]
        bars = ax.barh(rows, known.values(), height * 0.92, color=colour, label=label)
        texts = [f"{value:.2g}" if value < 100 else f"{value:,.0f}" for value in known.values()]
        ax.bar_label(bars, texts, padding=2, fontsize=8)
        largest = max(largest, *known.values())
    ax.set_xscale("log")
    ax.set_xlim(smallest / 2, 8 * largest)  # with room for the last number
    ax.set_title(title)
    ax.set_xlabel("milliseconds, root and gradient")
    ax.grid(axis="x")


def errors():
    """Relative error of the root and of its gradient against the condition number, float32."""
    cases = [case for case in _read("bench-cpu-float32")["cases"] if case["suite"] == "accuracy"]
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.4), sharey=True)
    solvers = {
        "ns": ("Newton-Schulz, 5 steps", THREE),
        "mpa-lya": ("the paper's MPA, 8 Lyapunov steps", TWO),
        "eigh": (_EIGH, SIX),
        "minimax+smith": ("matroot", ONE),
    }
    for ax, kind, title in zip(axes, ("root", "root_gradient"), ("the root", "its gradient"), strict=True):
        for name, (label, colour) in solvers.items():
            own = [c for c in cases if c["contestant"] == name and c["parameters"]["spectrum"] == "log"]
            points = sorted((c["parameters"]["condition"], c["errors"][kind]) for c in own if kind in c["errors"])
            ax.loglog(*zip(*points, strict=True), "o-", markersize=3.5, color=colour, label=label)
        ax.set_title(f"Relative error of {title}")
        ax.set_xlabel("condition number")
        ax.grid()
    axes[0].axhline(1.2e-7, color=INK, linewidth=0.8, linestyle=":")
    axes[1].axhline(1.2e-7, color=INK, linewidth=0.8, linestyle=":")
    axes[1].annotate("spacing of float32", (1e7, 1.4e-7), ha="right", fontsize=8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())
