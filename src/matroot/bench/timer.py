"""Times of contestants measured side by side, and where they were measured."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from torch import Tensor

import matroot

Function = Callable[[Tensor], Tensor]
Laps = dict[str, list[float]]
"""Seconds under ``single``, of synchronised calls, and ``back_to_back``, a call of several in a row."""


def seconds(work: Callable[[], object], device: str = "cpu") -> float:
    """Wall time of one call, the device's own work included."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def side_by_side(
    contestants: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu", patience: float = 30.0
) -> dict[str, list[float]]:
    """Seconds of every contestant in every round, the order reversed each time so that drift hits all alike.

    In a turn a contestant is called twice unmeasured, so that it finds caches and allocator as it leaves them itself,
    then three times measured. After ``patience`` seconds no new round starts.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order, start = list(contestants), time.perf_counter()
    for turn in range(rounds):
        if turn and time.perf_counter() - start > patience:
            break
        for name in order:
            work = contestants[name]
            work()
            work()
            times[name] += [seconds(work, device) for _ in range(3)]
        order.reverse()
    return times


def back_to_back(work: Callable[[], object], calls: int, device: str = "cpu") -> float:
    """Seconds a call of several in a row: on a GPU Python may run ahead of the device."""

    def burst() -> None:
        for _ in range(calls):
            work()

    return seconds(burst, device) / calls


def race(
    contestants: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu", patience: float = 1.5
) -> tuple[dict[str, Laps], dict[str, str]]:
    """Seconds of every contestant in turns, and why some have none.

    A contestant that fails is out. One that has taken ``patience`` seconds gets no more turns, but has had one.
    """
    laps: dict[str, Laps] = {}
    failures: dict[str, str] = {}
    spent = dict.fromkeys(contestants, 0.0)
    order = list(contestants)
    for _ in range(rounds):
        for name in order:
            if name in failures or spent[name] > patience:
                continue
            start = time.perf_counter()
            try:
                single, burst = _turn(contestants[name], device)
            except Exception as error:
                failures[name] = reason(error)
                continue
            lap = laps.setdefault(name, {"single": [], "back_to_back": []})
            lap["single"] += single
            lap["back_to_back"].append(burst)
            spent[name] += time.perf_counter() - start
        order.reverse()
    return laps, failures


def _turn(work: Callable[[], object], device: str) -> tuple[list[float], float]:
    """Single calls and a burst of 20, fewer where calls are slow; above half a second one call is both."""
    work()
    once = seconds(work, device)
    if once > 0.5:
        return [once], once
    single = [seconds(work, device) for _ in range(3 if once < 0.1 else 1)]
    return single, back_to_back(work, max(2, min(20, int(0.1 / once))), device)


def replay(step: Callable[[], object], patience: float = 1.0) -> list[float]:
    """Seconds of a step captured in a CUDA graph, from up to 30 replays of ten of them."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Threads of other libraries may go on with what they do.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(10):
            step()
    graph.replay()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or (len(times) < 30 and time.perf_counter() - start < patience):
        times.append(seconds(graph.replay, "cuda") / 10)
    return times


def reason(error: Exception) -> str:
    """What went wrong, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def spread(times: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and least of some times, in milliseconds."""
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    return {
        key: round(1e3 * t, 4)
        for key, t in (("median", median(times)), ("low", low), ("high", high), ("least", min(times)))
    }


def environment() -> dict[str, Any]:
    """The machine, the versions, the date."""
    cuda = torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if cuda else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "matroot": matroot.__version__,
    }


def save(path: Path, command: str, results: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Write raw results with the command that makes them, whole or not at all, one result a line.

    ``facts`` are what the results have in common.
    """
    lines = ",\n".join("  " + json.dumps(result) for result in results)
    head = json.dumps({"command": command, "surroundings": environment(), **facts}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(f'{head[:-2]},\n "results": [\n{lines}\n ]\n}}\n')
    partial.replace(path)


def _processor() -> str:
    try:
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("Model name")), platform.machine())
