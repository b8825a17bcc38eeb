"""Reports of many batches in the order of their numbers, computed here or in several processes."""

import os
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread

import torch

from ..._terminal import CommandError
from .batches import batch_of
from .check import Report, check

AT_ONCE = 4
"""Batches that a process is given at a time."""
AHEAD = 16
"""Parts for each process that are given out while the first of them is not there yet: large batches take longer."""


@contextmanager
def reports_of(numbers: range, device: str, max_n: int, jobs: int) -> Iterator[Iterator[Report]]:
    """The reports of these batches in order, as they come; what is not computed yet when it is left, never is.

    jobs: processes, which share a GPU; 1 computes here. CommandError, from the iterator, if one of them dies.
    """
    jobs = min(jobs, -(-len(numbers) // AT_ONCE))
    if jobs <= 1:
        yield (check(batch_of(number, max_n), device) for number in numbers)
        return
    threads = max(1, torch.get_num_threads() // jobs)
    # Spawned: CUDA does not survive a fork.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start_process, (threads,))
    try:
        yield _in_order(pool, numbers, device, max_n, AHEAD * jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, numbers: range, device: str, max_n: int, ahead: int) -> Iterator[Report]:
    parts = (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))
    coming = (pool.submit(_reports, part, device, max_n) for part in parts)
    waiting = deque(islice(coming, ahead))
    try:
        while waiting:
            yield from waiting.popleft().result()
            waiting.extend(islice(coming, 1))
    except BrokenProcessPool as error:
        raise CommandError(f"a process ended by itself: {error}; the same command goes on") from error


def _reports(numbers: range, device: str, max_n: int) -> list[Report]:
    return [check(batch_of(number, max_n), device) for number in numbers]


def _start_process(threads: int) -> None:
    torch.set_num_threads(threads)
    # Ctrl-C in the terminal comes to all processes: the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Of a process that is killed, those that it started do not hear otherwise."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
