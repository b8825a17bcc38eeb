"""Runs one after another in this process, or several at once in processes of their own."""

import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean
from typing import Any, Protocol

from ..._terminal import CommandError
from .run_state import RunState, read_run
from .plan import Run, RunOptions
from .worker import to_job, train_run

WORKER = (sys.executable, "-m", "matroot.train.compare.worker")
POLL = 0.3
"""Seconds between looks at processes."""
PATIENCE = 60.0
"""Seconds that a process has to stop before it is killed: it loses the current epoch then, and nothing else."""
INTERRUPTED = (130, -signal.SIGTERM, -signal.SIGINT)
"""Exit status of a process that was asked to stop."""


class Observer(Protocol):
    """Who is told what happens to runs."""

    def started(self, run: Run) -> None: ...

    def ended(self, run: Run, failure: str | None) -> None:
        """A run is finished, has failed, or was stopped: then it has neither a failure nor a result."""
        ...


def run_here(runs: Sequence[Run], options: RunOptions, observer: Observer) -> None:
    """One after another; the failure of one does not stop the others, Ctrl-C does."""
    for run in runs:
        observer.started(run)
        failure = None
        try:
            train_run(run, options)
        except CommandError as error:
            failure = str(error)
        except Exception as error:
            run.log.write_text(traceback.format_exc(), encoding="utf-8")
            failure = f"{_one_line(f'{type(error).__name__}: {error}')}; see {run.log}"
        finally:
            # After Ctrl-C too: the epochs so far are worth recording.
            observer.ended(run, failure)


@dataclass
class _Child:
    run: Run
    process: subprocess.Popen[bytes]
    epochs: int
    since: float
    """When the current epoch began, as far as can be seen from outside."""
    epoch_seconds: float | None
    stopping: bool = False

    def look(self, state: RunState, now: float) -> bool:
        """Whether an epoch has ended since the last look."""
        if state.epochs <= self.epochs:
            return False
        # The first interval holds the start of the process as well.
        self.epoch_seconds = max(now - self.since, state.epoch_seconds or 0.0)
        self.epochs, self.since = state.epochs, now
        return True


def run_in_processes(
    runs: Sequence[Run],
    options: RunOptions,
    observer: Observer,
    *,
    jobs: int,
    deadline: float | None = None,
    command: Sequence[str] = WORKER,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Up to ``jobs`` at once. No epoch is begun that would end after ``deadline``, by the ``clock``.

    Processes are stopped by SIGTERM, after which they can be resumed: at the deadline, and on Ctrl-C or SIGTERM here.
    """
    waiting, active = list(runs), list[_Child]()
    known: list[float] = []
    with _terminated_as_interrupted():
        try:
            while waiting or active:
                while waiting and len(active) < jobs:
                    if not _hopeful(waiting[0], known, deadline, clock()):
                        waiting.clear()
                        break
                    run = waiting.pop(0)
                    observer.started(run)
                    active.append(_start(run, options, command, clock()))
                for child in list(active):
                    if child.process.poll() is not None:
                        active.remove(child)
                        observer.ended(child.run, _failure(child))
                    elif deadline is not None and not child.stopping:
                        now = clock()
                        if child.look(read_run(child.run.folder), now) and child.epoch_seconds is not None:
                            known.append(child.epoch_seconds)
                            child.stopping = now + child.epoch_seconds > deadline
                        if child.stopping or now > deadline:
                            child.stopping = True
                            child.process.terminate()
                if active:
                    time.sleep(POLL)
        finally:
            _stop(active)
            for child in active:
                observer.ended(child.run, None)


def _start(run: Run, options: RunOptions, command: Sequence[str], now: float) -> _Child:
    state = read_run(run.folder)
    run.log.parent.mkdir(parents=True, exist_ok=True)
    with run.log.open("wb") as log:
        # A session of its own: Ctrl-C in the terminal comes here alone, and is passed on once.
        process = subprocess.Popen(
            [*command, to_job(run, options)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return _Child(run, process, state.epochs, now, state.epoch_seconds)


def _hopeful(run: Run, known: Sequence[float], deadline: float | None, now: float) -> bool:
    """Whether a run that is not running can finish an epoch in time."""
    if deadline is None:
        return True
    own = read_run(run.folder).epoch_seconds
    expected = own if own is not None else mean(known) if known else 0.0
    return now + expected < deadline


def _failure(child: _Child) -> str | None:
    """Why a process that ended did not finish its run; None if it did, or if it was asked to stop."""
    status = child.process.returncode
    if status == 0 or (child.stopping and status in INTERRUPTED):
        return None
    text = child.run.log.read_text(encoding="utf-8", errors="replace").strip()
    if status == 2:
        return _one_line(text)
    last = text.splitlines()[-1] if text else "it printed nothing"
    return f"exit status {status}: {_one_line(last)}; see {child.run.log}"


def _stop(active: Sequence[_Child]) -> None:
    for child in active:
        if not child.stopping:
            child.process.terminate()
    limit = time.monotonic() + PATIENCE
    for child in active:
        try:
            child.process.wait(max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM stops this process as Ctrl-C does, so that it stops its own."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
