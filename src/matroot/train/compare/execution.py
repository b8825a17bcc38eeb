"""Runs one after another in this process, or several at once in processes of their own."""

import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean
from typing import Any, Protocol

from ..._terminal import CommandError
from .plan import Run, RunOptions
from .run_state import read_run
from .worker import to_job, train_run

WORKER = (sys.executable, "-m", "matroot.train.compare.worker")
POLL = 0.3
"""Seconds between looks at processes."""
PATIENCE = 60.0
"""Seconds that a process has to stop before it is killed: it loses the current epoch then, and nothing else."""
STOPPED = (130, -signal.SIGTERM, -signal.SIGINT, -signal.SIGKILL)
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
    epoch_seconds: float | None
    began: float | None = None
    """When the current epoch began; None while that is not known."""
    patience_ends: float | None = None
    """When it is killed; None while it was not asked to stop."""

    def ends_epoch(self, now: float) -> bool:
        """Whether an epoch has ended since the last look, with another one to follow."""
        state = read_run(self.run.folder)
        if state.epochs <= self.epochs:
            return False
        trained = state.epoch_seconds or 0.0
        # The interval before the first epoch's end holds the start of the process as well.
        self.epoch_seconds = trained if self.began is None else max(trained, now - self.began)
        self.epochs, self.began = state.epochs, now
        return state.epochs < self.run.recipe.epochs

    def stop(self, now: float) -> None:
        """Ask it to stop, once; kill it where it does not."""
        if self.patience_ends is None:
            self.process.terminate()
            self.patience_ends = now + PATIENCE
        elif now > self.patience_ends:
            self.process.kill()

    def failure(self) -> str | None:
        """Why it ended without finishing its run; None if it did, or if it was asked to stop."""
        status = self.process.returncode
        if status == 0 or (self.patience_ends is not None and status in STOPPED):
            return None
        text = self.run.log.read_text(encoding="utf-8", errors="replace").strip()
        if status == 2:
            # What was logged before the message may be long.
            return _one_line(text, last=True)
        last = text.splitlines()[-1] if text else "it printed nothing"
        return f"exit status {status}: {_one_line(last)}; see {self.run.log}"


def run_in_processes(
    runs: Sequence[Run],
    options: RunOptions,
    observer: Observer,
    *,
    jobs: int,
    deadline: float | None = None,
    command: Sequence[str] = WORKER,
) -> None:
    """Up to ``jobs`` at once. No epoch is begun that would end after ``deadline``, in seconds of ``time.monotonic``.

    Processes are stopped by SIGTERM, after which they can be resumed: at the deadline, and on Ctrl-C or SIGTERM here.
    """
    waiting, active, known = list(runs), list[_Child](), list[float]()
    with _terminated_as_interrupted():
        try:
            while waiting or active:
                now = time.monotonic()
                if waiting and not _is_hopeful(waiting[0], known, deadline, now):
                    waiting.clear()
                elif waiting and len(active) < jobs:
                    observer.started(waiting[0])
                    active.append(_start(waiting.pop(0), options, command))
                    continue
                for child in active:
                    ends = deadline is not None and child.ends_epoch(now)
                    if ends and child.epoch_seconds is not None:
                        known.append(child.epoch_seconds)
                    if _must_stop(child, ends, deadline, now):
                        child.stop(now)
                _collect(active, observer)
                time.sleep(POLL if active else 0)
        finally:
            while active:
                for child in active:
                    child.stop(time.monotonic())
                time.sleep(POLL)
                _collect(active, observer)


def _start(run: Run, options: RunOptions, command: Sequence[str]) -> _Child:
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
    return _Child(run, process, state.epochs, state.epoch_seconds)


def _is_hopeful(run: Run, known: Sequence[float], deadline: float | None, now: float) -> bool:
    """Whether a run that is not running can finish an epoch in time."""
    if deadline is None:
        return True
    own = read_run(run.folder).epoch_seconds
    expected = own if own is not None else mean(known) if known else 0.0
    return now + expected < deadline


def _must_stop(child: _Child, ends_epoch: bool, deadline: float | None, now: float) -> bool:
    if deadline is None:
        return False
    return now > deadline or (ends_epoch and now + (child.epoch_seconds or 0.0) > deadline)


def _collect(active: list[_Child], observer: Observer) -> None:
    """Take leave of processes that have ended."""
    for child in [child for child in active if child.process.poll() is not None]:
        active.remove(child)
        if child.process.stdin is not None:
            child.process.stdin.close()
        observer.ended(child.run, child.failure())


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


def _one_line(text: str, last: bool = False) -> str:
    """Its first words, or its last ones."""
    words = " ".join(text.split())
    return words[-500:] if last else words[:500]
