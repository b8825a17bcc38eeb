"""Times on a GPU, forward and backward of the root: ``python -m matroot.bench.gpu``.

The product and its peers take turns in one run, which ends within its budget: what matters most comes first, and what
no time is left for says so. Results are saved as they come.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import matroot

from .baselines import EighRoot
from .gpu_baselines import COMPILED, DIFFERENTIABLE, compiled, contestants, step, versions
from .gpu_table import judge, show
from .problems import covariances, symmetric, value_and_gradient, worst_distance
from .roofline import Ceilings, ceilings, floors, shares, verdict, work_of
from .timer import race, reason, replay, save, spread

Result = dict[str, Any]
Shape = tuple[int, int]

SHAPES: tuple[Shape, ...] = (
    (1, 64), (64, 48), (10, 64), (16, 128), (4, 256), (256, 256), (64, 512),
    (1024, 64), (10000, 64), (10000, 32), (10000, 16),
)  # fmt: skip
QUICK: tuple[Shape, ...] = ((64, 48),)
TO_COMPILE: tuple[Shape, ...] = ((64, 48), (1024, 64))
"""Compiling takes far longer than anything else here."""
VARIANTS: dict[str, Callable[[Tensor], Any]] = {"inverse root": matroot.invsqrtm, "both roots": matroot.roots}
DISTINCT = 200
"""Larger batches repeat matrices."""
ASSUMED = {"forward": 11, "backward": 7, "source": "assumed for Wishart matrices: the kernels do not count"}
"""A product in half precision counts a third."""


class Bench:
    """One run on one device."""

    def __init__(self, device: str = "cuda", quick: bool = False, budget: float = 280.0) -> None:
        self.device, self.quick = device, quick
        self.end = time.perf_counter() + budget
        self.ceilings: Ceilings = ceilings(device, small=quick and device == "cpu")

    def left(self) -> float:
        return self.end - time.perf_counter()

    def problem(self, batch: int, n: int) -> tuple[Tensor, Tensor]:
        """Covariances of 2n samples and symmetric gradients, float32."""
        k = min(batch, DISTINCT)
        return tuple(
            T.float().repeat(-(-batch // k), 1, 1)[:batch].to(self.device) for T in (covariances(k, n), symmetric(k, n))
        )  # pyright: ignore[reportReturnType]

    def shape(self, batch: int, n: int, shapes_left: int = 1) -> Result:
        """Times of all contestants, errors, rates and what bounds them."""
        A, G = self.problem(batch, n)
        result: Result = {"batch": batch, "n": n, "plan": str(matroot.choose(A))}
        work, notes = contestants(A, G)
        if self.left() < 0:
            notes |= dict.fromkeys((name for name in work if name != "auto"), "left out: no time was left")
            work = {"auto": work["auto"]}
        patience = 0.3 if self.quick else min(1.5, max(0.2, self.left() / (10 * shapes_left)))
        laps, failures = race(work, 3 if self.quick else 12, self.device, patience)
        result["milliseconds"] = {
            name: {kind: spread(times) for kind, times in found.items()} for name, found in laps.items()
        }
        result["notes"] = notes | failures
        result |= self.errors(A, G, [name for name in laps if name in DIFFERENTIABLE])
        result["products"] = count(A[:DISTINCT], G[:DISTINCT]) if "auto" in laps else ASSUMED
        X = A.detach().requires_grad_()
        alone = A[:1].detach().requires_grad_()
        result["graph_milliseconds"] = {}
        self.capture(result, "root", partial(step, matroot.sqrtm, X, G))
        self.capture(result, "root of one matrix", partial(step, matroot.sqrtm, alone, G[:1]))
        result |= self.rates(result)
        return judge(result)

    def capture(self, result: Result, name: str, work: Callable[[], object]) -> None:
        """Time of a step in a CUDA graph, or why there is none."""
        try:
            result["graph_milliseconds"][name] = spread(replay(work, 0.1 if self.quick else 0.6))
        except Exception as error:
            result["notes"][f"{name} in a graph"] = reason(error)

    def errors(self, A: Tensor, G: Tensor, names: Sequence[str]) -> Result:
        """Largest relative errors against float64, of the product in the whole batch, of peers in the first matrices.

        Where a decomposition in float64 is slow, of a subset.
        """
        batch, n = A.shape[:2]
        known = min(batch, DISTINCT, DISTINCT if n <= 64 else 16 if n <= 128 else 4)
        few, up = A[:known].cpu().double(), G[:known].cpu().double()
        true = [T.to(self.device) for T in value_and_gradient(partial(EighRoot.apply, False), few, up)]
        place = torch.arange(batch, device=self.device) % DISTINCT
        checked = place < known
        found: Result = {"errors": {}, "matrices_checked": int(checked.sum())}
        for name in names:
            whole = name == "auto"
            try:
                got = value_and_gradient(DIFFERENTIABLE[name], *((A, G) if whole else (A[:known], G[:known])))
                pairs = [(g[checked], t[place[checked]]) if whole else (g, t) for g, t in zip(got, true, strict=True)]
                found["errors"][name] = dict(
                    zip(("root", "gradient"), (worst_distance(*pair) for pair in pairs), strict=True)
                )
            except Exception as error:
                found["errors"][name] = {"root": None, "gradient": None, "note": reason(error)}
        return found

    def rates(self, result: Result) -> Result:
        """Achieved rates in a graph next to the ceilings, and a sentence."""
        times = result["graph_milliseconds"]
        if "root" not in times:
            return {"bound": "Not measured in a graph."}
        batch, n = result["batch"], result["n"]
        products = result["products"]["forward"] + result["products"]["backward"]
        time_us = 1e3 * times["root"]["median"]
        alone = times.get("root of one matrix")
        flops, moved = work_of(batch, n, products)
        least = floors(batch, n, products, self.ceilings)
        teraflops, terabytes = 1e-6 * flops / time_us, 1e-6 * moved / time_us
        return {
            "teraflops_in_a_graph": teraflops,
            "terabytes_per_second_in_a_graph": terabytes,
            "share_of_ceiling": shares(teraflops, terabytes, n, self.ceilings),
            "floors_microseconds": least,
            "bound": verdict(time_us, alone and 1e3 * alone["median"], least),
        }

    def variants(self, result: Result) -> None:
        """Inverse root and both roots in a graph, next to the root."""
        A, G = self.problem(result["batch"], result["n"])
        X = A.detach().requires_grad_()
        times = result["graph_milliseconds"]
        for name, function in VARIANTS.items():
            if self.left() < 0:
                result["notes"][name] = "left out: no time was left"
                continue
            self.capture(result, name, partial(step, function, X, G))
            if name in times and "root" in times:
                result.setdefault("ratio_to_root", {})[name] = round(times[name]["median"] / times["root"]["median"], 3)

    def compile(self, result: Result, most: float = 60.0) -> None:
        """The same solver through ``torch.compile``."""
        most = min(most, self.left())
        if most < 5:
            result["notes"][COMPILED] = "left out: no time was left"
            return
        A, G = self.problem(result["batch"], result["n"])
        try:
            work, result["compile_seconds"] = compiled(A, G, most)
        except Exception as error:
            result["notes"][COMPILED] = reason(error)
            return
        laps, failures = race({COMPILED: work}, 3 if self.quick else 12, self.device, 0.3 if self.quick else 1.5)
        result["notes"] |= failures
        result["milliseconds"] |= {name: {k: spread(t) for k, t in found.items()} for name, found in laps.items()}


def count(A: Tensor, G: Tensor) -> Result:
    """Products a matrix of a step of the product, where it counts them."""
    X = A.detach().requires_grad_()
    with matroot.count_operations(matrices=len(A)) as forward:
        S = matroot.sqrtm(X)
    with matroot.count_operations(matrices=len(A)) as backward:
        torch.autograd.grad(S, X, G)
    if forward.products and backward.products:
        return {"forward": forward.products, "backward": backward.products, "source": "counted"}
    return ASSUMED


def run(bench: Bench, shapes: Sequence[Shape], results: list[Result], keep: Callable[[list[Result]], object]) -> None:
    """Everything for these shapes, what matters most first; ``keep`` sees the results grow."""
    for done, (batch, n) in enumerate(shapes):
        results.append(bench.shape(batch, n, len(shapes) - done))
        keep(results)
        print(f"{batch} x {n}: done, {bench.left():.0f} s left", file=sys.stderr, flush=True)
    for result in results:
        bench.variants(result)
        keep(results)
    for result in results:
        if (result["batch"], result["n"]) in TO_COMPILE:
            bench.compile(result)
            keep(results)


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """``16x128,4x256``"""
    try:
        shapes = tuple((int(batch), int(n)) for batch, n in (shape.split("x") for shape in text.split(",")))
    except ValueError:
        shapes = ()
    if not shapes or min(min(shape) for shape in shapes) < 1:
        raise argparse.ArgumentTypeError(f"shapes are written batch x size, such as 16x128,4x256; got {text!r}")
    return shapes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="one shape, to see that everything runs")
    parser.add_argument("--shapes", type=parse_shapes, help="which ones, as in 16x128,4x256")
    parser.add_argument("--budget", type=float, default=280.0, help="seconds after which nothing optional starts")
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("there is no CUDA device here", file=sys.stderr)
        return 1
    name = torch.cuda.get_device_name().replace(" ", "-").lower()
    path = chosen.out / f"gpu-{name}.json"
    bench = Bench(quick=chosen.quick, budget=chosen.budget)
    options = (["--quick"] if chosen.quick else []) + (
        ["--shapes " + ",".join(f"{batch}x{n}" for batch, n in chosen.shapes)] if chosen.shapes else []
    )
    command = " ".join(["python -m matroot.bench.gpu", *options])
    shapes = chosen.shapes or (QUICK if chosen.quick else SHAPES)
    results: list[Result] = []

    def keep(found: list[Result]) -> None:
        save(path, command, found, versions=versions(), ceilings=bench.ceilings)

    try:
        run(bench, shapes, results, keep)
    finally:  # what there is is worth seeing, whatever stopped the rest
        show(results, bench.ceilings)
        print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
