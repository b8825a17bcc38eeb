"""The program ``python -m matroot.bench.random_search``."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..._environment import device_name
from ..._terminal import exit_status
from ..formatting import scientific, three_digits
from ..text import table
from . import __doc__ as description
from .batches import MAX_SIZE, batch_of
from .check import check
from .execution import reports_of
from .search import Search, load

SAVE_EVERY = 10.0
"""Seconds; what came after the last time is measured again."""
SHOWN = 5
"""Worst cases of a quantity in the terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the search; returns the exit status: 1 if a result lacks a property, 2 if the file cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.random_search", description=description)
    parser.add_argument("--batches", type=int, default=10_000, help="in all, those of the file included (%(default)s)")
    parser.add_argument("--out", type=Path, help="benchmarks/results/random-<device>.json unless given")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--max-n", type=int, default=MAX_SIZE, help="largest size (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the batches (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="start over")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one batch, as a table; nothing is written")
    chosen = parser.parse_args(arguments)
    if chosen.only is not None:
        return show_batch(chosen.only, chosen.device, chosen.max_n)
    if chosen.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {chosen.jobs}")
    device = "cpu" if chosen.device == "cpu" else device_name()
    path = chosen.out or Path("benchmarks/results") / f"random-{device}.json"
    search = Search(chosen.device, chosen.max_n) if chosen.fresh else load(path, chosen.device, chosen.max_n)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    saved = time.perf_counter()
    numbers = range(search.done, chosen.batches)
    try:
        with (
            Progress(*columns, console=console, disable=not console.is_interactive) as progress,
            reports_of(numbers, chosen.device, chosen.max_n, chosen.jobs) as reports,
        ):
            bar = progress.add_task("batches", total=chosen.batches, completed=search.done)
            for number, report in zip(numbers, reports, strict=True):
                search.add(batch_of(number, chosen.max_n), report)
                progress.advance(bar)
                if time.perf_counter() - saved > SAVE_EVERY:
                    search.save(path)
                    saved = time.perf_counter()
    finally:  # also after an interrupt
        search.save(path)
        show(search)
        print(f"raw results: {path}")
    return 1 if search.failures else 0


def show(search: Search) -> None:
    """Print the worst cases of every quantity, and what failed."""
    print(f"{search.done} batches, {search.matrices} matrices; errors in units of rounding, the worst first")
    print("units: u (sqrt n + sqrt k) for roots, u (sqrt n + k) for inverse roots and gradients, sqrt eps for singular")
    rows = [
        [
            name, three_digits(r["units"]), scientific(r["error"]), str(r["n"]), r["kind"], scientific(r["condition"]),
            r["dtype"], scientific(r["scale"]), str(r["number"]),
        ]
        for name, records in search.worst.items()
        for r in records[:SHOWN]
    ]  # fmt: skip
    print(table(("quantity", "units", "error", "n", "spectrum", "condition", "dtype", "scale", "number"), rows))
    for failure in search.failures[:SHOWN]:
        print("failed: {failure}: batch {number}, n = {n}, {kind}, {dtype}, scale {scale:.0e}".format(**failure))
    if len(search.failures) > SHOWN:
        print(f"and {len(search.failures) - SHOWN} more")


def show_batch(number: int, device: str, max_n: int) -> int:
    """All matrices of one batch."""
    batch = batch_of(number, max_n)
    report = check(batch, device)
    print(f"batch {number}: {batch.size} x {batch.n}, {batch.kind}, {batch.dtype}, scale {batch.scale:.1e}")
    head = ["matrix", "condition", *(f"{name}{what}" for name in report.errors for what in ("", ", units"))]
    rows = []
    for k, place in enumerate(batch.good()):
        cells = [text for u, e in report.errors.values() for text in (scientific(e[k]), three_digits(u[k]))]
        rows.append([str(place), scientific(report.condition[k]), *cells])
    print(table(head, rows))
    for failure in report.failures:
        print(f"failed: {failure}")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
