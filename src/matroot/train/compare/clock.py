"""Steps timed in turns, so that drift of the machine affects all alike."""

import time
from collections.abc import Callable, Mapping
from statistics import median, quantiles

import torch

Work = Callable[[], object]

MIN_ROUNDS = 3
WARMUP = (1, 5)
"""Calls before the first sample, elsewhere and on CUDA, where a step is captured in the fourth."""
BURST = 0.05
"""Seconds of steps in a row that make a sample: on a GPU Python runs ahead of the device, as it does in training."""


def milliseconds_in_turns(
    entries: Mapping[str, Work], device: torch.device, time_budget: float = 1.0
) -> tuple[dict[str, tuple[float, float, float]], dict[str, str]]:
    """Milliseconds of every entry, as median and quartiles, and why the others have none.

    One sample each per round, in reverse order after every round, until ``time_budget`` seconds per entry are spent,
    for ``MIN_ROUNDS`` at least. Calls before do not count: in them code is compiled, and on CUDA a graph is captured.
    An entry that raises is left out.
    """
    failures: dict[str, str] = {}
    calls: dict[str, int] = {}
    for name, work in entries.items():
        try:
            for _ in range(WARMUP[device.type == "cuda"]):
                work()
            calls[name] = max(1, round(BURST / max(_seconds(work, 1, device), 1e-6)))
        except Exception as error:
            failures[name] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order, rounds, end = list(calls), 0, time.perf_counter() + time_budget * len(calls)
    while order and (rounds < MIN_ROUNDS or time.perf_counter() < end):
        for name in order:
            samples[name].append(1e3 * _seconds(entries[name], calls[name], device))
        order.reverse()
        rounds += 1
    return {name: _spread(values) for name, values in samples.items()}, failures


def _seconds(work: Work, calls: int, device: torch.device) -> float:
    """Of a call, from several in a row."""
    _synchronise(device)
    start = time.perf_counter()
    for _ in range(calls):
        work()
    _synchronise(device)
    return (time.perf_counter() - start) / calls


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _spread(values: list[float]) -> tuple[float, float, float]:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return median(values), low, high
