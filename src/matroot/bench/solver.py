"""Benchmarks of the default solver: ``python -m matroot.bench.solver NAME ...``, the names those of BENCHMARKS.

Each prints a table of matroot and its baselines from one run and writes the raw numbers as JSON.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import matroot

from .._terminal import exit_status
from .._timer import Work, milliseconds, time_interleaved
from .baselines import EighRoot, PaperRoot
from .cases import rounded
from .entries import SOLVERS
from .formatting import scientific, three_digits
from .memory import extra_memory
from .problems import (
    Function,
    covariances,
    covariances_and_gradients,
    symmetric,
    value_and_gradient,
    with_spectrum,
)
from .results import require_writable, save_program
from .suites.accuracy import CONDITIONS, errors, matrices, operations, spectra
from .suites.speed import QUICK, SHAPES
from .text import shape, table

Result = dict[str, Any]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
COMPLEX = {"complex64": torch.complex64, "complex128": torch.complex128}
OWN = SOLVERS | {"eigh": {"method": matroot.Eigen(), "gradient": matroot.Exact()}}
"""What matroot itself runs."""
SIZES = (16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384)
BATCHES = (1, 4, 16, 64)
LOG_CONDITION = 1e4
MEMORY_SHAPES = ((16, 64), (64, 64), (10000, 64), (10000, 32), (4, 128), (1000, 128))


def accuracy(quick: bool) -> Iterator[Result]:
    """Errors and operations of every solver, spectrum, condition number and dtype; 64 x 64 matrices."""
    for dtype in DTYPES:
        for kind, condition in spectra(quick):
            A, G = (T.to(DTYPES[dtype]) for T in matrices(kind, condition, quick))
            for name, solver in SOLVERS.items():
                case = {"dtype": dtype, "spectrum": kind, "condition": condition, "solver": name}
                yield case | _errors(A, G, solver) | operations(A, G, solver)


def _errors(A: Tensor, G: Tensor, solver: Any) -> Result:
    return {f"{name}_error": rounded(error) for name, error in errors(A, G, solver).items()}


def show_accuracy(results: Sequence[Result]) -> None:
    for dtype in DTYPES:
        print(
            f"\n{dtype}: worst spectrum but low-rank at each condition number; products forward (both roots) + backward"
        )
        rows = []
        for name in SOLVERS:
            for condition in (None, *CONDITIONS):
                own = [r for r in results if (r["dtype"], r["solver"], r["condition"]) == (dtype, name, condition)]
                if own := [r for r in own if r["spectrum"] != "low-rank"]:
                    rows.append([name, "2n" if condition is None else f"{condition:.0e}", *_worst(own)])
        print(table(("solver", "condition", "root", "inverse", "d root", "d inverse", "products"), rows))
        unit = scientific(torch.finfo(DTYPES[dtype]).eps / 2)
        print(f"unit roundoff u = {unit}; rounding alone: root u sqrt(condition), inverse root u condition")


def _worst(results: Sequence[Result]) -> list[str]:
    """The largest errors of some results, nan where one has none, and the largest counts of products."""
    keys = ("root_error", "inverse_error", "root_gradient_error", "inverse_gradient_error")
    columns = [[r[key] for r in results] for key in keys]
    worst = [math.nan if None in column else max(column) for column in columns]
    forward, backward = (max(r[way]["products"] for r in results) for way in ("forward", "backward"))
    return [*map(scientific, worst), f"{forward:g} + {backward:g}"]


def speed(quick: bool) -> Iterator[Result]:
    """Forward and backward pass of the root, float32: the default, eigh with the exact gradient, the paper."""
    for batch, n in QUICK if quick else SHAPES:
        A, G = _float32(batch, n, distinct=500)
        functions: dict[str, Function] = {
            "auto": matroot.sqrtm,
            "eigh": partial(EighRoot.apply, False),
            "paper": PaperRoot.apply,
            "minimax+krylov": partial(matroot.sqrtm, **SOLVERS["minimax+krylov"]),
        }
        times = _times(functions, A, G, 2 if quick else 15, 5.0)
        plan = matroot.choose(A)
        error = _errors(A[:16], G[:16], {"method": plan.method, "gradient": plan.gradient})
        yield {"batch": batch, "n": n, "plan": str(plan), "milliseconds": times} | error


def show_speed(results: Sequence[Result]) -> None:
    print("\nForward and backward of the root, float32, medians in ms")
    head = ("batch x n", "eigh", "paper", "auto", "eigh/auto", "paper/auto", "error", "of gradient")
    rows = []
    for r in results:
        eigh, paper, auto = (r["milliseconds"][name]["median"] for name in ("eigh", "paper", "auto"))
        numbers = map(three_digits, (eigh, paper, auto, eigh / auto, paper / auto))
        rows.append([_shape(r), *numbers, scientific(r["root_error"]), scientific(r["root_gradient_error"])])
    print(table(head, rows))


def crossover(quick: bool) -> Iterator[Result]:
    """Where products overtake decompositions: the measurements behind the table of ``matroot.choose``."""
    for name, dtype in (DTYPES | COMPLEX).items():
        wide = torch.complex128 if dtype.is_complex else torch.float64
        for condition in (None, LOG_CONDITION):
            for n in (8, 32) if quick else SIZES:
                for batch in (1, 4) if quick else BATCHES:
                    if batch * n * n > 1 << 21:
                        continue
                    if condition is None:
                        A = covariances(batch, n, dtype=wide)
                    else:
                        A = with_spectrum("log", batch, n, condition, dtype=wide)
                    A, G = A.to(dtype), symmetric(batch, n, dtype=wide).to(dtype)
                    functions: dict[str, Function] = {
                        solver: partial(matroot.sqrtm, **OWN[solver]) for solver in ("eigh", "minimax+smith")
                    }
                    times = _times(functions, A, G, 2 if quick else 7, 0.5)
                    plan = matroot.choose(A)
                    case = {"dtype": name, "condition": condition, "batch": batch, "n": n}
                    yield case | {"auto": f"{plan.method.name}+{plan.gradient.name}", "milliseconds": times}


def show_crossover(results: Sequence[Result]) -> None:
    print("\nForward and backward of the root, medians in ms; the choice of auto")
    rows = []
    for r in results:
        eigh, products = (r["milliseconds"][name]["median"] for name in ("eigh", "minimax+smith"))
        condition = "2n samples" if r["condition"] is None else f"log {r['condition']:.0e}"
        numbers = map(three_digits, (eigh, products, eigh / products))
        rows.append([r["dtype"], condition, _shape(r), *numbers, r["auto"]])
    print(table(("dtype", "spectrum", "batch x n", "eigh", "minimax+smith", "eigh/minimax", "auto"), rows))


def _times(functions: Mapping[str, Function], A: Tensor, G: Tensor, rounds: int, time_budget: float) -> Result:
    works = {name: partial(value_and_gradient, function, A, G) for name, function in functions.items()}
    return _milliseconds(works, rounds, time_budget)


def _milliseconds(works: Mapping[str, Work], rounds: int, time_budget: float) -> Result:
    """Median, quartiles and least of every entry; one that fails stops the benchmark."""
    timings = time_interleaved(works, rounds, time_budget=time_budget)
    if timings.failures:
        raise RuntimeError("; ".join(f"{name}: {why}" for name, why in timings.failures.items()))
    return {name: milliseconds(samples.single) for name, samples in timings.samples.items()}


def memory(quick: bool) -> Iterator[Result]:
    """Peak memory of a forward and backward pass beyond input, output, gradients and saved roots."""
    for batch, n in ((4, 16),) if quick else MEMORY_SHAPES:
        A, G = _float32(batch, n, distinct=100)
        for name in ("minimax+smith", "minimax+krylov", "eigh", "mpa-lya"):
            extra = extra_memory(partial(matroot.sqrtm, **OWN[name]), A, G)
            yield {"batch": batch, "n": n, "solver": name, "bytes": extra, "batches": extra / A.nbytes}


def show_memory(results: Sequence[Result]) -> None:
    print()
    rows = [[_shape(r), r["solver"], *map(three_digits, (r["bytes"] / 2**20, r["batches"]))] for r in results]
    print(table(("batch x n", "solver", "MB", "tensors of the batch"), rows))


def _float32(batch: int, n: int, distinct: int = 1024) -> tuple[Tensor, Tensor]:
    A, G = covariances_and_gradients(batch, n, distinct)
    return A.float(), G.float()


def _shape(r: Result) -> str:
    return shape(r["batch"], r["n"])


BENCHMARKS: dict[str, tuple[Callable[[bool], Iterator[Result]], Callable[[Sequence[Result]], None]]] = {
    "accuracy": (accuracy, show_accuracy),
    "speed": (speed, show_speed),
    "crossover": (crossover, show_crossover),
    "memory": (memory, show_memory),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.solver", description=__doc__)
    parser.add_argument("benchmark", nargs="+", choices=BENCHMARKS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON files")
    parser.add_argument("--quick", action="store_true", help="few small cases, to see that everything runs")
    chosen = parser.parse_args(arguments)
    for name in chosen.benchmark:
        measure, show = BENCHMARKS[name]
        path = chosen.out / f"solver-{name}-cpu.json"
        require_writable(path)  # before minutes of measurements
        results: list[Result] = []
        try:
            for result in measure(chosen.quick):
                results.append(result)
                if sys.stderr.isatty():
                    print(f"\r{name}: {len(results)} cases", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"\ninterrupted; no file written for {name}", file=sys.stderr)
            return 130
        quick = " --quick" if chosen.quick else ""
        save_program(path, f"python -m matroot.bench.solver {name}{quick}", results)
        show(results)
        print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
