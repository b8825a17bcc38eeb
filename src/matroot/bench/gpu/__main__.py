"""The program ``python -m matroot.bench.gpu``."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from ..._environment import device_name
from ..._terminal import CommandError, exit_status
from ..results import save_program
from . import __doc__ as description
from .baselines import versions
from .measure import BUDGET, QUICK, SHAPES, GpuRun, Result, Shape, measure_all
from .suites import SUITES
from .table import show

TABLE = "shapes"
"""The suite of well-conditioned covariances in many shapes, next to goals and the roofline."""
KERNELS = ("auto", "triton", "torch")
"""Backends that can be measured by name."""


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """``16x128,4x256``"""
    try:
        shapes = tuple((int(batch), int(n)) for batch, n in (shape.split("x") for shape in text.split(",")))
    except ValueError:
        shapes = ()
    if not shapes or min(min(shape) for shape in shapes) < 1:
        raise argparse.ArgumentTypeError(f"shapes are written batch x size, such as 16x128,4x256; got {text!r}")
    return shapes


def command_of(
    suite: str,
    quick: bool,
    shapes: Sequence[Shape] | None = None,
    budget: float = BUDGET,
    backend: str = "auto",
) -> str:
    """The command that measures one suite, with the options that are not the default."""
    parts = [f"python -m matroot.bench.gpu --suites {suite}"]
    parts += ["--quick"] if quick else []
    parts += ["--shapes " + ",".join(f"{batch}x{n}" for batch, n in shapes)] if shapes else []
    parts += [f"--budget {budget:g}"] if budget != BUDGET else []
    parts += [f"--backend {backend}"] if backend != "auto" else []
    return " ".join(parts)


def path_of(folder: Path, suite: str, backend: str = "auto") -> Path:
    """A file for every suite and backend, so that one of them can be measured again alone."""
    parts = ["gpu", *([] if suite == TABLE else [suite]), *([] if backend == "auto" else [backend]), device_name()]
    return folder / f"{'-'.join(parts)}.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.gpu", description=description)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON files")
    parser.add_argument(
        "--suites",
        nargs="+",
        choices=(TABLE, *SUITES),
        default=[TABLE, *SUITES],
        metavar="NAME",
        help=f"which ones, all unless given: {', '.join((TABLE, *SUITES))}",
    )
    parser.add_argument("--quick", action="store_true", help="small cases, to see that everything runs")
    parser.add_argument("--shapes", type=parse_shapes, help="which ones of the suite 'shapes', as in 16x128,4x256")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help="seconds after which nothing optional of 'shapes' starts"
    )
    parser.add_argument(
        "--backend", choices=KERNELS, default="auto", help="of matroot in suites other than 'shapes' and 'float64'"
    )
    chosen = parser.parse_args(arguments)
    if chosen.backend != "auto" and (others := {TABLE, "float64"} & {*chosen.suites}):
        parser.error(f"--backend {chosen.backend}: name suites, and not {' and '.join(sorted(others))}")
    if not torch.cuda.is_available():
        raise CommandError("there is no CUDA device here")
    for name in dict.fromkeys(chosen.suites):
        path = path_of(chosen.out, name, chosen.backend)
        if name == TABLE:
            measure_table(path, chosen)
        else:
            measure_suite(name, path, chosen.quick, chosen.backend)
        print(f"raw results: {path}")
    return 0


def measure_table(path: Path, chosen: argparse.Namespace) -> None:
    """Measure, save and show the suite of shapes; what there is also after an interrupt."""
    run = GpuRun(quick=chosen.quick, time_budget=chosen.budget)
    command = command_of(TABLE, chosen.quick, chosen.shapes, chosen.budget)
    results: list[Result] = []

    def save(found: Sequence[Result]) -> None:
        save_program(path, command, found, versions=versions(), ceilings=run.roofline)

    try:
        measure_all(run, chosen.shapes or (QUICK if chosen.quick else SHAPES), results, save)
    finally:
        show(results, run.roofline)


def measure_suite(name: str, path: Path, quick: bool, backend: str = "auto", device: str = "cuda") -> list[Result]:
    """The same of another suite, saved after every result."""
    suite, results = SUITES[name], []
    began = time.perf_counter()
    try:
        for result in suite.measure(device, quick, backend):
            results.append(result)
            spent = round(time.perf_counter() - began, 1)
            save_program(path, command_of(name, quick, backend=backend), results, versions=versions(), seconds=spent)
            print(f"{name}: {result['case']}, {spent:.0f} s", file=sys.stderr, flush=True)
    finally:
        print(f"\n{name}: {suite.title}")
        suite.show(results)
    return results


if __name__ == "__main__":
    sys.exit(exit_status(main))
