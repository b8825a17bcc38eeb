"""Benchmarks of the default solver: ``python -m matroot.bench.solver {accuracy,speed,crossover,memory}``.

Each prints a table of product and peers from one run and writes the raw numbers next to it as JSON.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import matroot

from .baselines import EighRoot, PaperRoot
from .memory import extra_memory
from .problems import SPECTRA, covariances, symmetric, value_and_gradient, with_spectrum, worst_distance
from .timer import Function, save, side_by_side, spread

Result = dict[str, Any]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
CONDITIONS = tuple(10.0**k for k in range(1, 8))
SOLVERS = {
    "minimax+krylov": {"method": matroot.Minimax(), "gradient": matroot.Krylov()},
    "minimax+smith": {"method": matroot.Minimax(), "gradient": matroot.Smith()},
    "eigh": {"method": matroot.Eigen(), "gradient": matroot.Exact()},
    "mpa-lya": matroot.preset("mpa-lya"),
    "mtp-lya": matroot.preset("mtp-lya"),
    "ns": matroot.preset("ns"),
    "ns converged": {"method": matroot.NewtonSchulz(iterations=30), "gradient": matroot.Lyapunov(iterations=30)},
}
SHAPES = ((64, 48), (64, 64), (16, 128), (256, 32), (1, 64), (10, 64), (10000, 64))
SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384)
BATCHES = (1, 4, 16, 64, 256, 1024)


def accuracy(quick: bool) -> Iterator[Result]:
    """Errors and products of every solver, spectrum, condition number and dtype; 64 x 64 matrices."""
    batch, n = (2, 16) if quick else (8, 64)
    G = symmetric(batch, n)
    for dtype, kind in ((d, k) for d in DTYPES for k in SPECTRA):
        for condition in (None,) if kind == "wishart" else CONDITIONS[1::3] if quick else CONDITIONS:
            A = covariances(batch, n) if condition is None else with_spectrum(kind, batch, n, condition)
            A = A.to(DTYPES[dtype])
            for name, solver in SOLVERS.items():
                found = {"dtype": dtype, "spectrum": kind, "condition": condition, "solver": name}
                yield found | errors(A, G.to(A.dtype), solver) | operations(A, G.to(A.dtype), solver)


def errors(A: Tensor, G: Tensor, solver: Any) -> Result:
    """Largest errors in the batch; None where there is no exact answer: of singular matrices only the root has one."""
    found: Result = {}
    for name, function, inverse in (("root", matroot.sqrtm, False), ("inverse", matroot.invsqrtm, True)):
        value, gradient = value_and_gradient(partial(function, **solver), A, G)
        true_value, true_gradient = value_and_gradient(partial(EighRoot.apply, inverse), A.double(), G.double())
        if not inverse:
            values, U = torch.linalg.eigh(A.double())
            true_value = (U * values.clamp_min(0).sqrt()[..., None, :]) @ U.mT
        found[f"{name}_error"] = worst_distance(value, true_value)
        found[f"{name}_gradient_error"] = worst_distance(gradient, true_gradient)
    return found


def operations(A: Tensor, G: Tensor, solver: Any) -> Result:
    """Products and factorisations a matrix, of both roots and of the gradient of the root."""
    with matroot.count_operations(matrices=len(A)) as forward:
        matroot.roots(A, **solver)
    X = A.clone().requires_grad_()
    S = matroot.sqrtm(X, **solver)
    with matroot.count_operations(matrices=len(A)) as backward:
        torch.autograd.grad(S, X, G)
    fields = ("products", "solves", "factorizations", "decompositions")
    return {"forward": {f: getattr(forward, f) for f in fields}, "backward": {f: getattr(backward, f) for f in fields}}


def show_accuracy(results: Sequence[Result]) -> None:
    for dtype in DTYPES:
        eps = torch.finfo(DTYPES[dtype]).eps
        print(
            f"\n{dtype}: worst spectrum but low-rank at each condition number; products forward (both roots) + backward"
        )
        print(f"{'solver':15} {'cond.':>6} {'root':>8} {'inverse':>8} {'d root':>8} {'d inv.':>8}  products")
        for name in SOLVERS:
            for condition in (None, *CONDITIONS):
                rows = [r for r in results if (r["dtype"], r["solver"], r["condition"]) == (dtype, name, condition)]
                rows = [r for r in rows if r["spectrum"] != "low-rank"]
                if rows:
                    keys = ("root_error", "inverse_error", "root_gradient_error", "inverse_gradient_error")
                    worst = [max((r[key] or float("nan") for r in rows), default=float("nan")) for key in keys]
                    spent = [max(r[way]["products"] for r in rows) for way in ("forward", "backward")]
                    label = "2n" if condition is None else f"{condition:.0e}"
                    print(
                        f"{name:15} {label:>6} " + " ".join(f"{w:8.1e}" for w in worst) + "  {:g} + {:g}".format(*spent)
                    )
        print(f"unit roundoff {eps / 2:.1e}; floors: root u sqrt(condition), inverse root u condition")


def speed(quick: bool) -> Iterator[Result]:
    """Forward and backward pass of the root, float32, ratios to eigh with the exact gradient and to the paper."""
    for batch, n in ((4, 16), (2, 32)) if quick else SHAPES:
        A, G = covariances(min(batch, 500), n).float(), symmetric(min(batch, 500), n).float()
        repeats = -(-batch // len(A))
        A, G = (T.repeat(repeats, 1, 1)[:batch] for T in (A, G))
        contestants = {
            "auto": matroot.sqrtm,
            "eigh": partial(EighRoot.apply, False),
            "paper": PaperRoot.apply,
            "minimax+krylov": partial(matroot.sqrtm, **SOLVERS["minimax+krylov"]),
        }
        times = _race(contestants, A, G, 2 if quick else 15, 20.0)
        plan = matroot.choose(A)
        error = errors(A[:16], G[:16], {"method": plan.method, "gradient": plan.gradient})
        yield {"batch": batch, "n": n, "plan": str(plan), "milliseconds": times} | error


def show_speed(results: Sequence[Result]) -> None:
    print(f"\n{'batch x n':>12} {'eigh':>9} {'paper':>9} {'auto':>9} ms  eigh/auto  paper/auto  error, of gradient")
    for r in results:
        eigh, paper, auto = (r["milliseconds"][name]["median"] for name in ("eigh", "paper", "auto"))
        times = f"{eigh:9.2f} {paper:9.2f} {auto:9.2f}   {eigh / auto:10.2f}  {paper / auto:10.2f}"
        print(f"{r['batch']:>6} x {r['n']:<3} {times}  {r['root_error']:.1e}, {r['root_gradient_error']:.1e}")


def crossover(quick: bool) -> Iterator[Result]:
    """Where products overtake decompositions: what the table of ``matroot.choose`` rests on."""
    for n in (8, 32) if quick else SIZES:
        for batch in (1, 16) if quick else BATCHES:
            if batch * n * n > 1 << 22:
                continue
            A, G = covariances(batch, n).float(), symmetric(batch, n).float()
            solvers = {name: SOLVERS[name] for name in ("eigh", "minimax+smith", "minimax+krylov")}
            contestants: dict[str, Function] = {name: partial(matroot.sqrtm, **s) for name, s in solvers.items()}
            contestants["bare eigh"] = partial(EighRoot.apply, False)
            times = _race(contestants, A, G, 2 if quick else 7, 2.0)
            factor = torch.linalg.cholesky(A)
            parts = {
                "product": lambda A=A: torch.bmm(A, A),
                "cholesky": lambda A=A: torch.linalg.cholesky_ex(A),
                "inverse": lambda factor=factor: torch.cholesky_inverse(factor),
            }
            times |= {name: spread(t) for name, t in side_by_side(parts, 5, patience=1.0).items()}
            plan = matroot.choose(A)
            yield {"batch": batch, "n": n, "auto": f"{plan.method.name}+{plan.gradient.name}", "milliseconds": times}


def show_crossover(results: Sequence[Result]) -> None:
    print(f"\n{'batch x n':>12} {'bare eigh':>9} {'eigen':>8} {'smith':>8} {'krylov':>8} ms, auto: time/best")
    for r in results:
        t = {name: times["median"] for name, times in r["milliseconds"].items()}
        auto = t["eigh" if r["auto"].startswith("eigen") else r["auto"]]
        best = min(t["bare eigh"], t["minimax+krylov"], t["minimax+smith"])
        times = f"{t['bare eigh']:9.3f} {t['eigh']:8.3f} {t['minimax+smith']:8.3f} {t['minimax+krylov']:8.3f}"
        print(f"{r['batch']:>6} x {r['n']:<4} {times}  {r['auto']:14} {auto / best:5.2f}")
    print("\nOne Cholesky factorisation, one inverse from it, in products (a rational first step saves four to nine):")
    for r in results:
        cholesky, inverse, product = (r["milliseconds"][name]["median"] for name in ("cholesky", "inverse", "product"))
        print(f"{r['batch']:>6} x {r['n']:<4} {cholesky / product:6.1f} {inverse / product:6.1f}")


def _race(contestants: dict[str, Function], A: Tensor, G: Tensor, rounds: int, patience: float) -> Result:
    work: dict[str, Callable[[], object]] = {
        name: partial(value_and_gradient, function, A, G) for name, function in contestants.items()
    }
    return {name: spread(times) for name, times in side_by_side(work, rounds, patience=patience).items()}


def memory(quick: bool) -> Iterator[Result]:
    """Peak memory of a forward and backward pass beyond input, output, gradients and saved roots."""
    for batch, n in ((4, 16),) if quick else ((16, 64), (64, 64), (10000, 64), (10000, 32), (4, 128), (1000, 128)):
        A, G = covariances(min(batch, 100), n).float(), symmetric(min(batch, 100), n).float()
        A, G = (T.repeat(-(-batch // len(T)), 1, 1)[:batch] for T in (A, G))
        for name in ("minimax+smith", "minimax+krylov", "eigh", "mpa-lya"):
            extra = extra_memory(partial(matroot.sqrtm, **SOLVERS[name]), A, G)
            yield {"batch": batch, "n": n, "solver": name, "bytes": extra, "batches": extra / A.nbytes}


def show_memory(results: Sequence[Result]) -> None:
    print(f"\n{'batch x n':>12} {'solver':15} {'MB':>8} {'tensors of the batch':>21}")
    for r in results:
        shape = f"{r['batch']} x {r['n']}"
        print(f"{shape:>12} {r['solver']:15} {r['bytes'] / 2**20:8.1f} {r['batches']:21.2f}")


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
        results: list[Result] = []
        try:
            for result in measure(chosen.quick):
                results.append(result)
                if sys.stderr.isatty():
                    print(f"\r{name}: {len(results)} cases", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"\ninterrupted; no file written for {name}", file=sys.stderr)
            return 130
        path = chosen.out / f"solver-{name}-cpu.json"
        save(path, f"python -m matroot.bench.solver {name}", results)
        show(results)
        print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
