"""The program ``python -m matroot.bench.gpu``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from ..._environment import device_name
from ..._terminal import exit_status
from ..results import save_program
from . import __doc__ as description
from .baselines import versions
from .measure import BUDGET, QUICK, SHAPES, GpuRun, Result, Shape, measure_all
from .table import show


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """``16x128,4x256``"""
    try:
        shapes = tuple((int(batch), int(n)) for batch, n in (shape.split("x") for shape in text.split(",")))
    except ValueError:
        shapes = ()
    if not shapes or min(min(shape) for shape in shapes) < 1:
        raise argparse.ArgumentTypeError(f"shapes are written batch x size, such as 16x128,4x256; got {text!r}")
    return shapes


def command_of(quick: bool, shapes: Sequence[Shape] | None, budget: float) -> str:
    """The command with the options that are not the default."""
    parts = ["python -m matroot.bench.gpu"]
    parts += ["--quick"] if quick else []
    parts += ["--shapes " + ",".join(f"{batch}x{n}" for batch, n in shapes)] if shapes else []
    parts += [f"--budget {budget:g}"] if budget != BUDGET else []
    return " ".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.gpu", description=description)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="one shape, to see that everything runs")
    parser.add_argument("--shapes", type=parse_shapes, help="which ones, as in 16x128,4x256")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds after which nothing optional starts")
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("there is no CUDA device here", file=sys.stderr)
        return 1
    path = chosen.out / f"gpu-{device_name()}.json"
    run = GpuRun(quick=chosen.quick, time_budget=chosen.budget)
    command = command_of(chosen.quick, chosen.shapes, chosen.budget)
    results: list[Result] = []

    def save(found: Sequence[Result]) -> None:
        save_program(path, command, found, versions=versions(), ceilings=run.roofline)

    try:
        measure_all(run, chosen.shapes or (QUICK if chosen.quick else SHAPES), results, save)
    finally:  # also after an interrupt
        show(results, run.roofline)
        print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
