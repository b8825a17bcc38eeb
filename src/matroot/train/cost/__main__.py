"""The program ``python -m matroot.train.cost``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..._environment import device_name, environment
from ..._files import write_whole
from ..._terminal import CommandError, exit_status
from .estimate import FORMAT, estimates, estimates_table, read_steps, steps_table
from .measure import free_memory, measure, workloads

GPUS = 8
PRICE = 3.0
"""Of a GPU-hour, in dollars: an assumption, of the size of what clouds ask for such a GPU."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure steps and write their file, or print the tables of a file; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m matroot.train.cost",
        description="Measures training steps of the large recipes on this GPU; tells from them what the recipes cost.",
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--estimate", type=Path, metavar="FILE", help="measure nothing, print the tables of a file")
    parser.add_argument("--gpus", type=int, default=GPUS, help=f"in all machines together, {GPUS} unless told")
    parser.add_argument("--price", type=float, default=PRICE, help=f"of a GPU-hour in dollars, {PRICE:g} unless told")
    chosen = parser.parse_args(arguments)
    if chosen.gpus < 1 or not chosen.price >= 0:
        raise CommandError(f"--gpus must be 1 at least, and --price not negative; got {chosen.gpus}, {chosen.price:g}")
    path = chosen.estimate
    if path is None:
        path = _measure_all(chosen.out)
        print()
    print(tables(path, chosen.gpus, chosen.price))
    return 0


def tables(path: Path, gpus: int = GPUS, price: float = PRICE) -> str:
    """The measured steps of a file, and hours and cost that follow from them, as markdown."""
    steps = read_steps(path)
    return f"{steps_table(steps)}\n\n{estimates_table(estimates(steps, gpus), price)}"


def _measure_all(folder: Path) -> Path:
    """Measure every workload; the file is written after each, so that an interrupt loses one."""
    if not torch.cuda.is_available():
        raise CommandError("there is no CUDA device here; what a GPU costs is measured on one")
    path = folder / f"steps-{device_name()}.json"
    results: list[dict[str, Any]] = []
    for job, recipe in workloads():
        print(f"{recipe.model}, batch {recipe.batch_size}, {recipe.preset}", flush=True)
        results.append(measure(recipe, job.num_classes, torch.device("cuda")))
        free_memory()
        save(path, results)
    return path


def save(path: Path, results: Sequence[dict[str, Any]]) -> None:
    """Write the file, a result a line; CommandError if that fails, and the earlier file stays."""
    head = {"format": FORMAT, "command": "python -m matroot.train.cost", "environment": environment()}
    start = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
    lines = ",\n".join(f"  {json.dumps(result, allow_nan=False)}" for result in results)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f'{start},\n "results": [\n{lines}\n ]\n}}\n'.encode())
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


if __name__ == "__main__":
    sys.exit(exit_status(main))
