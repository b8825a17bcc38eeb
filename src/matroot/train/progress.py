"""What a run prints: a live bar on a terminal, a line for every epoch."""

import sys
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

RATE_OVER = 600.0
"""Seconds from which the time left is estimated; rich's own are fewer than slow steps take."""


class Reporter:
    """Prints to standard output; nothing where ``quiet``, and no bar where that is no terminal."""

    def __init__(self, epochs: int, steps: int, quiet: bool) -> None:
        # Not rich's default, which wraps lines of files and pipes at 80 characters.
        self._console = Console(quiet=quiet, highlight=False, soft_wrap=True)
        self._epochs, self._steps = epochs, steps
        live = self._console.is_terminal and not quiet
        columns = (
            TextColumn("{task.description}"),
            BarColumn(20),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
        )
        self._progress = Progress(
            *columns, console=self._console, transient=True, disable=not live, speed_estimate_period=RATE_OVER
        )
        self._task = self._progress.add_task("", total=epochs * steps)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False)

    def resume(self, epoch: int) -> None:
        """Epochs that need not be trained again."""
        self._progress.update(self._task, total=(self._epochs - epoch) * self._steps)

    def step(self, epoch: int, steps: int, loss: float, accuracy: float, rate: float) -> None:
        """Show means of an epoch under way, and images per second."""
        text = f"epoch {epoch}/{self._epochs}  loss {loss:.3f}  accuracy {accuracy:.1%}  {rate:,.0f} images/s"
        self.advance(text, steps)

    def advance(self, text: str, steps: int) -> None:
        """Show what is under way, and that so many more steps are done."""
        self._progress.update(self._task, description=text, advance=steps)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Print a line of ``metrics.jsonl``."""
        width = len(str(self._epochs))
        self.say(
            f"epoch {row['epoch']:{width}d}/{self._epochs}  loss {row['train_loss']:.4f}  "
            f"test {row['test_accuracy']:6.2%}  lr {row['lr']:.2g}  "
            f"{row['seconds']:.1f} s  {row['images_per_second']:,.0f} images/s"
        )
        sys.stdout.flush()
