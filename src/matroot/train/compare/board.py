"""The runs of a comparison while they are made: a live table on a terminal, a line for each event otherwise."""

import time
from collections.abc import Callable, Sequence
from statistics import mean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ..._terminal import CommandError
from .plan import Run
from .run_state import RunState, read_run

Ended = Callable[[Run, str | None], RunState]
"""Takes note of the end of a run, and says how far it came."""


class Board:
    """Told what happens to runs; a context in which the table is shown."""

    def __init__(self, runs: Sequence[Run], jobs: int, console: Console, note_end: Ended) -> None:
        self._runs, self._jobs, self._console, self._note_end = list(runs), jobs, console, note_end
        self._states = {run.name: read_run(run.folder) for run in runs}
        self._words = {run.name: _word(run, self._states[run.name]) for run in runs}
        self._live = Live(get_renderable=self.table, console=console, refresh_per_second=1, transient=True)

    def __enter__(self) -> "Board":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def started(self, run: Run) -> None:
        self._words[run.name] = "running"
        self._say(f"{run.name}: {'resumed' if self._states[run.name].epochs else 'started'}")

    def ended(self, run: Run, failure: str | None) -> None:
        state = self._states[run.name] = self._note_end(run, failure)
        self._words[run.name] = "failed" if failure is not None else _word(run, state)
        text = f"{run.name}: {self._words[run.name]}, epoch {state.epochs} of {run.recipe.epochs}"
        best = "" if state.best is None else f", best accuracy {_percent(state.best)} %"
        self._say(text + best + ("" if failure is None else f": {failure}"))

    def table(self) -> Table:
        """The runs as they stand."""
        for run in self._runs:
            if self._words[run.name] == "running":
                self._states[run.name] = _state(run, self._states[run.name])
        table = Table("run", "", box=SIMPLE_HEAD, caption=self._caption(), caption_justify="left")
        for head in ("epoch", "accuracy %", "best %", "left"):
            table.add_column(head, justify="right")
        for run in self._runs:
            state, word = self._states[run.name], self._words[run.name]
            last = state.curve.test_accuracy[-1] if state.curve.epoch else None
            left = _left(run, state, state.epoch_seconds) if word == "running" else None
            table.add_row(
                escape(run.name),
                word,
                f"{state.epochs}/{run.recipe.epochs}",
                _percent(last),
                _percent(state.best),
                duration(left),
            )
        return table

    def _caption(self) -> str:
        """Time left for all, where an epoch of one is known."""
        known = [state.epoch_seconds for state in self._states.values() if state.epoch_seconds is not None]
        if not known:
            return ""
        left = [
            _left(run, self._states[run.name], self._states[run.name].epoch_seconds or mean(known)) or 0.0
            for run in self._runs
            if self._words[run.name] not in ("finished", "failed")
        ]
        return f"about {duration(sum(left) / max(1, min(self._jobs, len(left))))} left"

    def _say(self, text: str) -> None:
        # On a terminal the table says it, and would have to be drawn around these lines.
        if not self._console.is_terminal:
            stamp = time.strftime("%H:%M:%S")
            self._console.print(f"{stamp} {text}", markup=False, highlight=False, soft_wrap=True)


def _state(run: Run, earlier: RunState) -> RunState:
    """As the folder says; what was known before where it cannot be read, for the run is told in the end."""
    try:
        return read_run(run.folder)
    except CommandError:
        return earlier


def _word(run: Run, state: RunState) -> str:
    if state.result is not None:
        return "finished"
    return "stopped" if state.epochs else "waiting"


def _left(run: Run, state: RunState, epoch_seconds: float | None) -> float | None:
    return None if epoch_seconds is None else (run.recipe.epochs - state.epochs) * epoch_seconds


def _percent(accuracy: float | None) -> str:
    return "" if accuracy is None else f"{100 * accuracy:.2f}"


def duration(seconds: float | None) -> str:
    """``1:02:03``, ``2:03``; nothing for None."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
