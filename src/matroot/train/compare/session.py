"""A comparison from start to end: what is there already, times of steps, runs, the result file and its page."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from ..._environment import environment
from ..._files import write_whole
from ..._terminal import CommandError
from ..config import as_json, counted
from ..recipe import Recipe
from .board import Board
from .execution import WORKER, run_here, run_in_processes
from .page import page
from .plan import Run, RunOptions, plan, require_same, shared_fields
from .results import CompareError, Comparison, RunResult, read, write
from .run_state import RunState, read_run
from .terminal import show

KEPT = ("processor", "device", "torch", "matroot", "source", "commit")
"""Of the environment of a run."""


@dataclass(frozen=True)
class Request:
    """What is to be compared, and how the runs are made."""

    name: str
    variant: str
    recipe: Recipe
    presets: tuple[str, ...]
    seeds: tuple[int, ...]
    out: Path
    command: str
    options: RunOptions = field(default_factory=RunOptions)
    jobs: int = 1
    time_limit: float | None = None
    """Seconds."""
    timing: bool = True
    worker: Sequence[str] = WORKER
    """Command of a run in a process of its own."""


def compare(request: Request, console: Console) -> int:
    """Make the runs that are missing, writing the result file after each; then print the table and write the page.

    Returns the exit status: 0 when all runs are finished, 1 when some failed or are not. CommandError if there are
    runs of another recipe in the folder, or a result file that cannot be read; nothing is changed then.
    """
    deadline = None if request.time_limit is None else time.monotonic() + request.time_limit
    runs = plan(request.recipe, request.presets, request.seeds, request.out)
    session = _Session(request, runs)
    session.save()
    if request.timing and session.times_missing():
        presets = counted(len(session.timed_together()), "preset")
        console.print(f"timing a step of {presets} ...", highlight=False)
        session.time()
    missing = [run for run in runs if session.is_missing(run)]
    console.print(f"{len(runs) - len(missing)} of {len(runs)} runs are there: {request.out}", highlight=False)
    try:
        if missing:
            shown = [run for run in runs if run in missing or run.folder.exists()]
            with Board(shown, request.jobs, console, session.note_end) as board:
                if request.jobs > 1 or deadline is not None:
                    run_in_processes(
                        missing,
                        request.options,
                        board,
                        jobs=request.jobs,
                        deadline=deadline,
                        command=request.worker,
                    )
                else:
                    run_here(missing, request.options, board)
    finally:
        # After Ctrl-C too.
        show(session.comparison, console)
        console.print(str(session.path), highlight=False, soft_wrap=True)
        _print_page(session, console)
    unfinished = sum(map(session.is_missing, runs))
    if unfinished:
        verb = "is" if unfinished == 1 else "are"
        console.print(f"{counted(unfinished, 'run')} {verb} not finished; the same command goes on.", highlight=False)
    return 1 if unfinished else 0


def show_files(paths: Sequence[Path], out: Path | None, console: Console) -> int:
    """Print the tables of result files and write their pages, one beside each file or all as one page ``out``.

    Returns 0. CompareError for a file that cannot be read or a page that cannot be written; before anything is written.
    """
    found = {path: read(path) for path in dict.fromkeys(paths)}
    for comparison in found.values():
        show(comparison, console)
    pages = {path.with_suffix(".html"): [one] for path, one in found.items()}
    if out is not None:
        if any(out.resolve() == path.resolve() for path in paths):
            raise CompareError(f"{out}: the page would replace a result file")
        pages = {out: list(found.values())}
    for path, comparisons in pages.items():
        write_page(path, comparisons)
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def write_page(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write the page of some comparisons; CompareError if that fails, and the earlier one stays."""
    # JSON may contain lone surrogates, which UTF-8 cannot encode.
    data = page(comparisons).encode("utf-8", "replace")
    try:
        write_whole(path, data)
    except OSError as error:
        raise CompareError(f"cannot write {path}: {error.strerror or error}") from error


def _print_page(session: "_Session", console: Console) -> None:
    """Write the page and print its path; where that fails say why, for the runs are worth more than their page."""
    path = session.path.with_suffix(".html")
    try:
        write_page(path, [session.comparison])
    except CommandError as error:
        console.print(f"no page: {error}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(str(path), highlight=False, soft_wrap=True)


class _Session:
    """The result file while runs are made; what it says of them comes from their folders."""

    def __init__(self, request: Request, runs: Sequence[Run]) -> None:
        self._request = request
        self.comparison = Comparison(
            request.command, environment(), request.name, request.variant, shared_fields(request.recipe)
        )
        self.path = request.out / self.comparison.file_name
        if self.path.exists():
            earlier = read(self.path)
            require_same(self.path, earlier.recipe, self.comparison.recipe)
            # Also with runs that are not asked for this time.
            self.comparison = replace(
                self.comparison, stand_in=earlier.stand_in, runs=earlier.runs, timing=earlier.timing
            )
        for run in runs:
            state = read_run(run.folder)
            if state.recipe is not None:
                require_same(run.folder / "run.json", state.recipe, as_json(run.recipe))
            elif not self.is_missing(run):
                continue  # made elsewhere, or its folder is gone
            self._note(run, state, None)

    def is_missing(self, run: Run) -> bool:
        """Whether the result file does not have the result of a run."""
        known = [one for one in self.comparison.of(run.recipe.preset) if one.seed == run.recipe.seed]
        return not known or known[0].result is None

    def note_end(self, run: Run, failure: str | None) -> RunState:
        """Take note of how far a run came, and write it."""
        state = read_run(run.folder)
        self._note(run, state, failure)
        self.save()
        return state

    def times_missing(self) -> bool:
        """Whether steps of a preset were not timed, or not on this device."""
        from .. import distributed
        from .timing import device_name

        timing = self.comparison.timing
        if timing is None:
            return True
        here = device_name(distributed.start(self._request.options.device).device)
        return timing.device != here or not set(self._request.presets) <= timing.steps.keys() | timing.failures.keys()

    def timed_together(self) -> tuple[str, ...]:
        """The presets asked for and all that the result file has: only times of the same turns can be compared."""
        timing = self.comparison.timing
        earlier = () if timing is None else (*timing.steps, *timing.failures)
        return tuple(dict.fromkeys((*self.comparison.presets, *earlier, *self._request.presets)))

    def time(self) -> None:
        """Time a step of every preset, and write it."""
        from .timing import time_steps

        timing = time_steps(self._request.recipe, self.timed_together(), self._request.options)
        self.comparison = replace(self.comparison, timing=timing)
        self.save()

    def save(self) -> None:
        write(self.path, self.comparison)

    def _note(self, run: Run, state: RunState, failure: str | None) -> None:
        place = None if state.environment is None else {key: state.environment.get(key) for key in KEPT}
        one = RunResult(run.recipe.preset, run.recipe.seed, state.result, failure, state.curve, place)
        self.comparison = self.comparison.with_run(one)
        if state.result is not None:
            self.comparison = replace(self.comparison, stand_in=state.result.get("stand_in"))
