"""Training steps timed in turns."""

from collections.abc import Mapping

import torch

from ..._timer import Work, milliseconds, one_line, time_interleaved

ROUNDS = 30
WARMUP = (1, 5)
"""Calls before the first sample, elsewhere and on CUDA, where a step is captured in the fourth."""


def milliseconds_in_turns(
    entries: Mapping[str, Work], device: torch.device, time_budget: float = 1.0
) -> tuple[dict[str, tuple[float, float, float]], dict[str, str]]:
    """Milliseconds of every entry, as median and quartiles, and why the others have none.

    Samples are calls in a row, as steps are in training: on a GPU Python runs ahead of the device. An entry that has
    spent ``time_budget`` seconds takes no further turn; one that raises is left out.
    """
    warm: dict[str, Work] = {}
    failures: dict[str, str] = {}
    for name, work in entries.items():
        try:
            for _ in range(WARMUP[device.type == "cuda"]):
                work()
            warm[name] = work
        except Exception as error:
            failures[name] = one_line(error)
    timings = time_interleaved(warm, ROUNDS, device.type, time_budget=time_budget, back_to_back=True)
    spreads = {name: milliseconds(samples.back_to_back) for name, samples in timings.samples.items()}
    times = {name: (spread["median"], spread["low"], spread["high"]) for name, spread in spreads.items()}
    return times, failures | timings.failures
