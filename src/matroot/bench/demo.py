"""``matroot demo``: every preset, the default and ``Minimax`` next to ``torch.linalg.eigh``."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

import matroot

from .._terminal import exit_status
from .._timer import time_interleaved
from .baselines import EighRoot
from .entries import SOLVERS
from .formatting import scientific, three_digits
from .problems import Function, covariances, relative_errors, symmetric, value_and_gradient

SECONDS = 20.0
"""What all entries together may take on a busy machine, beyond the turns that each gets at least."""


@dataclass(frozen=True)
class Solver:
    """A named way to compute roots; ``inverse`` is None where there is no inverse root."""

    name: str
    method: str
    gradient: str
    root: Function
    inverse: Function | None


@dataclass(frozen=True)
class Row:
    """What was measured of one solver.

    Errors are relative Frobenius distances to a float64 eigendecomposition, the median over the batch.
    ``milliseconds`` is the median time of the root with its gradient over ``samples`` calls, ``ratio`` that time over
    torch's.
    """

    name: str
    method: str
    gradient: str
    root_error: float
    inverse_error: float | None
    root_gradient_error: float
    inverse_gradient_error: float | None
    milliseconds: float
    ratio: float
    samples: int


def solvers(A: Tensor) -> list[Solver]:
    """The reference first, then the default, then ``Minimax`` with ``Krylov``, then every preset."""
    plan = matroot.choose(A)
    choices = {
        "default": {"method": plan.method, "gradient": plan.gradient},
        "minimax": SOLVERS["minimax+krylov"],
        **{name: matroot.preset(name) for name in matroot.presets()},
    }
    found = [Solver("torch", "linalg.eigh", "exact", partial(EighRoot.apply, False), partial(EighRoot.apply, True))]
    for name, choice in choices.items():
        method, gradient = choice["method"], choice["gradient"]
        inverse = partial(matroot.invsqrtm, **choice) if method.has_inverse else None
        found.append(Solver(name, method.name, gradient.name, partial(matroot.sqrtm, **choice), inverse))
    return found


def reference(A: Tensor, G: Tensor, inverse: bool) -> tuple[Tensor, Tensor]:
    """The root, or inverse root, and its gradient from an eigendecomposition in float64."""
    return value_and_gradient(partial(EighRoot.apply, inverse), A.double(), G.double())


def errors(function: Function, A: Tensor, G: Tensor, true: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Relative errors of the value and the gradient, median over the batch; NaN if any matrix has NaN."""
    found = value_and_gradient(function, A, G)
    value, gradient = (relative_errors(f, t).median().item() for f, t in zip(found, true, strict=True))
    return value, gradient


def measure(
    batch: int, n: int, rounds: int, device: torch.device, progress: Callable[[float], object] = lambda fraction: None
) -> list[Row]:
    """One row per solver, timed in turns; ``progress`` is called with the fraction of the turns that are done."""
    A, G = (T.float().to(device) for T in (covariances(batch, n), symmetric(batch, n)))
    true_root, true_inverse = reference(A, G, inverse=False), reference(A, G, inverse=True)
    found = solvers(A)
    accuracy = [
        (errors(s.root, A, G, true_root), errors(s.inverse, A, G, true_inverse) if s.inverse else (None, None))
        for s in found
    ]
    works = {s.name: partial(value_and_gradient, s.root, A, G) for s in found}
    timings = time_interleaved(works, rounds, device.type, time_budget=SECONDS / len(works), progress=progress)
    samples = [timings.samples[s.name].single for s in found]
    medians = [median(times) for times in samples]
    return [
        Row(s.name, s.method, s.gradient, r[0], i[0], r[1], i[1], 1e3 * t, t / medians[0], len(times))
        for s, (r, i), t, times in zip(found, accuracy, medians, samples, strict=True)
    ]


def table(rows: list[Row], console: Console) -> Table:
    """The rows as a table that fits 80 columns; cells are apart by more where there are 100."""
    missing = "-" if console.options.ascii_only else "–"  # noqa: RUF001
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1 if console.width >= 100 else 0), pad_edge=False)
    drawn.add_column("\nname", no_wrap=True)
    drawn.add_column("\nmethod")
    drawn.add_column("\ngradient")
    for header in ("root\nerror", "inv.\nerror", "root\ngrad.", "inv.\ngrad.", "time\nms", "times\ntorch"):
        drawn.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        values = (row.root_error, row.inverse_error, row.root_gradient_error, row.inverse_gradient_error)
        cells = [row.name, row.method, row.gradient, *(scientific(v, missing) for v in values)]
        style = {"torch": "cyan", "default": "bold green"}.get(row.name)
        cells += [three_digits(row.milliseconds), three_digits(row.ratio)]
        drawn.add_row(*cells, style=style, end_section=row.name == "minimax")
    return drawn


def findings(rows: list[Row]) -> list[str]:
    """Sentences computed from the rows."""
    torch_row, default, _, *presets = rows
    faster = sorted((row for row in rows if row.ratio <= 0.95), key=lambda row: row.ratio)
    named = [f"{row.name} ({three_digits(row.ratio)}, root error {scientific(row.root_error)})" for row in faster]

    def span(error: Callable[[Row], float]) -> str:
        ranked = sorted(presets, key=lambda row: (math.isnan(error(row)), error(row)))
        return " to ".join(f"{scientific(error(row))} ({row.name})" for row in (ranked[0], ranked[-1]))

    return [
        f"The default takes {three_digits(default.ratio)} times as long as torch.linalg.eigh with the exact gradient; "
        f"root error {scientific(default.root_error)} against {scientific(torch_row.root_error)}, gradient error "
        f"{scientific(default.root_gradient_error)} against {scientific(torch_row.root_gradient_error)}.",
        f"Among the presets the root error runs from {span(lambda row: row.root_error)}, the error of the root's "
        f"gradient from {span(lambda row: row.root_gradient_error)}.",
        f"At least 5 % faster than torch in this run: {', '.join(named) or 'none'}.",
    ]


def show(console: Console, batch: int, n: int, rounds: int) -> None:
    """Measure with a progress bar, then print the table and the findings."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    versions = f"matroot {matroot.__version__}, torch {torch.__version__}"
    console.print(f"{versions}, device: {machine}, CPU threads: {torch.get_num_threads()}")
    console.print(f"{batch} covariances of size {n} x {n}, {2 * n} samples each, float32\n")
    columns = ("measuring", BarColumn(), "{task.percentage:>3.0f} %", TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        task = progress.add_task("", total=1)
        rows = measure(batch, n, rounds, device, lambda fraction: progress.update(task, completed=fraction))
    console.print(table(rows, console))
    console.print(
        "\nErrors: relative Frobenius distance to a float64 eigendecomposition, median over the batch. "
        f"Time: the root with its gradient, median of at least {min(row.samples for row in rows)} calls, and its ratio "
        "to torch's.\n",
        style="dim",
    )
    for sentence in findings(rows):
        console.print(sentence)


def main(console: Console | None = None, *, batch: int = 64, n: int = 64, rounds: int = 4) -> int:
    """Run the demo; returns the exit status."""
    try:
        show(console or Console(highlight=False), batch, n, rounds)
    except KeyboardInterrupt:
        print("interrupted before the table was complete", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
