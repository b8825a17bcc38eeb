"""One timer for all benchmarks: entries are called in turns, so that drift of the machine affects all alike."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

import torch

Work = Callable[[], object]

MIN_TURNS = 3
"""Turns that a slow entry gets at least."""
FAR_OVER = 4
"""An entry that has spent this many time budgets is done a turn earlier."""
BRIEF = 0.1
"""Seconds below which a call depends on what is in the caches: it is repeated, and only the repetitions count."""
LONG = 0.5
"""Seconds above which a call in a row takes as long as a single one."""


@dataclass
class Samples:
    """Seconds of single synchronised calls, and where asked for of calls in a row, each divided by their number."""

    single: list[float] = field(default_factory=list)
    back_to_back: list[float] = field(default_factory=list)


@dataclass
class Timings:
    """Samples of every entry that ran, and why the others have none."""

    samples: dict[str, Samples]
    failures: dict[str, str]


class TimingInterrupted(KeyboardInterrupt):
    """Ctrl-C while timing; ``timings`` are those of the entries that had enough turns."""

    def __init__(self, timings: Timings) -> None:
        super().__init__()
        self.timings = timings


def seconds(work: Work, device: str = "cpu") -> float:
    """Wall time of one call, the device's own work included."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def seconds_back_to_back(work: Work, calls: int, device: str = "cpu") -> float:
    """Seconds per call of several in a row: on a GPU Python may run ahead of the device."""

    def burst() -> None:
        for _ in range(calls):
            work()

    return seconds(burst, device) / calls


def time_interleaved(
    entries: Mapping[str, Work],
    rounds: int,
    device: str = "cpu",
    *,
    time_budget: float = 1.0,
    min_turns: int = MIN_TURNS,
    back_to_back: bool = False,
    progress: Callable[[float], object] = lambda fraction: None,
) -> Timings:
    """Samples of all entries, one turn each per round; the order is reversed after every round.

    A first round, in which code is compiled, does not count. An entry that has spent ``time_budget`` seconds stops
    after ``min_turns`` turns, or one fewer where it has spent four budgets. One that raises is excluded.

    Ctrl-C raises ``TimingInterrupted`` with the entries that had as many turns.
    """
    timings = Timings({name: Samples() for name in entries}, {})
    turns, spent = dict.fromkeys(entries, 0), dict.fromkeys(entries, 0.0)
    order = list(entries)

    def is_measured(name: str) -> bool:
        least = min_turns - (spent[name] >= FAR_OVER * time_budget)
        return turns[name] >= max(1, min(least, rounds))

    try:
        for turn in range(rounds + 1):
            for k, name in enumerate(order):
                if name in timings.failures or (is_measured(name) and spent[name] > time_budget):
                    continue
                try:
                    if turn == 0:
                        seconds(entries[name], device)
                    else:
                        spent[name] += _take_turn(entries[name], device, back_to_back, timings.samples[name])
                        turns[name] += 1
                except Exception as error:
                    timings.failures[name] = one_line(error)
                    del timings.samples[name]
                progress((turn + (k + 1) / len(order)) / (rounds + 1))
            order.reverse()
    except KeyboardInterrupt:
        measured = {name: samples for name, samples in timings.samples.items() if is_measured(name)}
        raise TimingInterrupted(Timings(measured, timings.failures)) from None
    return timings


def _take_turn(work: Work, device: str, back_to_back: bool, samples: Samples) -> float:
    """Add a sample of a slow call, three of a brief one, and one of calls in a row; returns the seconds spent."""
    start = time.perf_counter()
    once = seconds(work, device)
    single = [once] if once >= BRIEF else [seconds(work, device) for _ in range(3)]
    samples.single += single
    if back_to_back:
        calls = max(2, min(20, int(0.1 / max(once, 1e-6))))
        samples.back_to_back.append(once if once > LONG else seconds_back_to_back(work, calls, device))
    return time.perf_counter() - start


def time_in_graph(work: Work, time_budget: float = 1.0) -> list[float]:
    """Seconds of a call captured in a CUDA graph, from up to 30 replays of ten calls each."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Threads of other libraries may call CUDA while the graph is captured.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(10):
            work()
    graph.replay()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or (len(times) < 30 and time.perf_counter() - start < time_budget):
        times.append(seconds(graph.replay, "cuda") / 10)
    return times


def milliseconds(times: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and least of some seconds, in milliseconds."""
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    low, high = max(low, min(times)), min(high, max(times))  # of two samples they would lie beyond
    return {
        key: round(1e3 * t, 4)
        for key, t in (("median", median(times)), ("low", low), ("high", high), ("least", min(times)))
    }


def milliseconds_of_both(timings: Timings) -> dict[str, dict[str, dict[str, float]]]:
    """Milliseconds of ``single`` and ``back_to_back`` calls of every entry."""
    return {
        name: {"single": milliseconds(found.single), "back_to_back": milliseconds(found.back_to_back)}
        for name, found in timings.samples.items()
    }


def one_line(error: Exception) -> str:
    """Type and message of an exception, on one line of at most 200 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
