"""Every preset, the default and ``Minimax`` next to ``torch.linalg.eigh``: ``python -m matroot.bench.demo``."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

import matroot

from .baselines import EighRoot
from .problems import covariances, distance, symmetric, value_and_gradient
from .timer import Function, seconds

try:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn
    from rich.table import Table
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    sys.exit('the demo draws with rich, which is not installed: pip install "matroot[experiments]"')


@dataclass(frozen=True)
class Contestant:
    """A named way to compute roots; ``inverse`` is None where there is no inverse root."""

    name: str
    method: str
    gradient: str
    root: Function
    inverse: Function | None


@dataclass(frozen=True)
class Row:
    """What was measured of one contestant.

    Errors are relative Frobenius distances to a float64 eigendecomposition, the median over the batch.
    ``milliseconds`` is the median time of the root with its gradient, ``ratio`` that time over torch's,
    ``rounds`` how many times the median is of.
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
    rounds: int


def contestants(A: Tensor) -> list[Contestant]:
    """The reference first, then the default, then the product-only solver, then every preset."""
    plan = matroot.choose(A)
    choices: dict[str, tuple[matroot.methods.Method, matroot.gradients.Gradient]] = {
        "default": (plan.method, plan.gradient),
        "minimax": (matroot.Minimax(), matroot.Krylov()),
    }
    for name in matroot.presets():
        preset = matroot.preset(name)
        choices[name] = preset["method"], preset["gradient"]
    field = [Contestant("torch", "linalg.eigh", "exact", partial(EighRoot.apply, False), partial(EighRoot.apply, True))]
    for name, (method, gradient) in choices.items():
        root = partial(matroot.sqrtm, method=method, gradient=gradient)
        inverse = partial(matroot.invsqrtm, method=method, gradient=gradient) if method.has_inverse else None
        field.append(Contestant(name, method.name, gradient.name, root, inverse))
    return field


def truth(A: Tensor, G: Tensor, inverse: bool) -> tuple[Tensor, Tensor]:
    """The root, or inverse root, and its gradient from an eigendecomposition in float64."""
    return value_and_gradient(partial(EighRoot.apply, inverse), A.double(), G.double())


def errors(function: Function, A: Tensor, G: Tensor, true: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Relative errors of the value and the gradient, median over the batch; NaN if any matrix has NaN."""
    found = value_and_gradient(function, A, G)
    value, gradient = (distance(f, t).median().item() for f, t in zip(found, true, strict=True))
    return value, gradient


def measure(
    batch: int, n: int, rounds: int, device: torch.device, report: Callable[[float], object] = lambda done: None
) -> list[Row]:
    """One row per contestant; ``report`` hears the fraction done.

    Every round times each contestant once, and every other round in reverse order, so that a machine
    that slows down slows all of them. Round 0 warms up and is not counted. A busy machine gets fewer
    rounds: after 20 s no other one starts, as long as there are three.
    """
    start = time.perf_counter()
    A, G = (T.float().to(device) for T in (covariances(batch, n), symmetric(batch, n)))
    true_root, true_inverse = truth(A, G, inverse=False), truth(A, G, inverse=True)
    field = contestants(A)
    accuracy, times = [], [[] for _ in field]
    for c in field:
        inverse = errors(c.inverse, A, G, true_inverse) if c.inverse else (None, None)
        accuracy.append((errors(c.root, A, G, true_root), inverse))
        report(len(accuracy) / len(field) / (rounds + 2))
    order = list(range(len(field)))
    for turn in range(rounds + 1):
        if turn > 3 and time.perf_counter() - start > 20:
            break
        for step, index in enumerate(order, start=1):
            work = partial(value_and_gradient, field[index].root, A, G)
            times[index].append(seconds(work, device.type))
            report((turn + 1 + step / len(field)) / (rounds + 2))
        order.reverse()
    medians = [median(t[1:]) for t in times]
    return [
        Row(c.name, c.method, c.gradient, r[0], i[0], r[1], i[1], 1e3 * t, t / medians[0], len(times[0]) - 1)
        for c, (r, i), t in zip(field, accuracy, medians, strict=True)
    ]


def scientific(value: float | None, missing: str = "-") -> str:
    """2.1e-7, nan, or the sign for a value that does not exist."""
    if value is None:
        return missing
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if math.isfinite(value) else "nan"


def three_digits(value: float) -> str:
    """3.21, 32.1, 321."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def table(rows: list[Row], console: Console) -> Table:
    """The rows as a table that fits 80 columns and breathes where there are 100."""
    missing = "-" if console.options.ascii_only else "–"  # noqa: RUF001
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1 if console.width >= 100 else 0), pad_edge=False)
    drawn.add_column("\nname", no_wrap=True)
    drawn.add_column("\nmethod")
    drawn.add_column("\ngradient")
    for header in ("root\nerror", "inverse\nerror", "root\ngrad.", "inverse\ngrad.", "time\nms", "times\ntorch"):
        drawn.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        values = (row.root_error, row.inverse_error, row.root_gradient_error, row.inverse_gradient_error)
        cells = [row.name, row.method, row.gradient, *(scientific(v, missing) for v in values)]
        style = {"torch": "cyan", "default": "bold green"}.get(row.name)
        cells += [three_digits(row.milliseconds), three_digits(row.ratio)]
        drawn.add_row(*cells, style=style, end_section=row.name == "minimax")
    return drawn


def findings(rows: list[Row]) -> list[str]:
    """What the numbers say, in sentences."""
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
    """Measure behind a progress bar, then draw and explain."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    versions = f"matroot {matroot.__version__}, torch {torch.__version__}"
    console.print(f"{versions}, device: {machine}, CPU threads: {torch.get_num_threads()}")
    console.print(f"{batch} covariances of size {n} x {n}, {2 * n} samples each, float32\n")
    columns = ("measuring", BarColumn(), "{task.percentage:>3.0f} %", TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        task = progress.add_task("", total=1)
        rows = measure(batch, n, rounds, device, lambda done: progress.update(task, completed=done))
    console.print(table(rows, console))
    console.print(
        "\nErrors: relative Frobenius distance to a float64 eigendecomposition, median over the batch. "
        f"Time: the root with its gradient, median of {rows[0].rounds} rounds, and the same over torch's.\n",
        style="dim",
    )
    for sentence in findings(rows):
        console.print(sentence)


def main(console: Console | None = None, *, batch: int = 64, n: int = 64, rounds: int = 11) -> int:
    """Run the demo; returns the exit status."""
    try:
        show(console or Console(highlight=False), batch, n, rounds)
    except KeyboardInterrupt:
        print("interrupted before the table was complete", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
