"""Measurements of one run on a GPU."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import matroot

from ..._timer import Work, milliseconds, milliseconds_of_both, one_line, time_in_graph, time_interleaved
from ..baselines import EighRoot
from ..cases import rounded
from ..problems import covariances_and_gradients, forward_backward, largest_error, value_and_gradient
from .baselines import COMPILED, DIFFERENTIABLE, compiled, works
from .roofline import Roofline, limiting_factor, lower_bounds, measure_roofline, roofline_shares, work_of
from .table import with_goals

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
ASSUMED = {"forward": 11, "backward": 7, "source": "assumed for Wishart matrices: products in kernels are not counted"}
"""A product in half precision counts a third."""
BUDGET = 280.0
"""Seconds after which nothing optional starts."""
NO_TIME = "left out: no time was left"


class GpuRun:
    """One run on one device."""

    def __init__(self, device: str = "cuda", quick: bool = False, time_budget: float = BUDGET) -> None:
        self.device, self.quick = device, quick
        self.end = time.perf_counter() + time_budget
        self.roofline: Roofline = measure_roofline(device, small=quick and device == "cpu")

    def seconds_left(self) -> float:
        return self.end - time.perf_counter()

    def problem(self, batch: int, n: int) -> tuple[Tensor, Tensor]:
        """Covariances of 2n samples and symmetric gradients, float32."""
        A, G = covariances_and_gradients(batch, n, DISTINCT)
        return A.float().to(self.device), G.float().to(self.device)

    def measure_shape(self, batch: int, n: int, shapes_left: int = 1) -> Result:
        """Times of matroot and its baselines, errors, rates and what limits them."""
        A, G = self.problem(batch, n)
        result: Result = {"batch": batch, "n": n, "plan": str(matroot.choose(A))}
        entries, notes = works(A, G)
        if self.seconds_left() < 0:
            notes |= dict.fromkeys((name for name in entries if name != "auto"), NO_TIME)
            entries = {"auto": entries["auto"]}
        result["notes"] = notes
        self.time(result, entries, min(1.5, max(0.2, self.seconds_left() / (10 * shapes_left))))
        timed = result["milliseconds"]
        result |= self.errors(A, G, [name for name in timed if name in DIFFERENTIABLE])
        result["products"] = count(A[:DISTINCT], G[:DISTINCT]) if "auto" in timed else ASSUMED
        X = A.detach().requires_grad_()
        alone = A[:1].detach().requires_grad_()
        result["graph_milliseconds"] = {}
        self.time_in_graph(result, "root", partial(forward_backward, matroot.sqrtm, X, G))
        self.time_in_graph(result, "root of one matrix", partial(forward_backward, matroot.sqrtm, alone, G[:1]))
        result |= self.rates(result)
        return with_goals(result)

    def time(self, result: Result, entries: dict[str, Work], time_budget: float) -> None:
        """Add times of single calls and of calls in a row, and why entries have none."""
        rounds, time_budget = (3, 0.3) if self.quick else (12, time_budget)
        timings = time_interleaved(
            entries, rounds, self.device, time_budget=time_budget, min_turns=1, back_to_back=True
        )
        result["milliseconds"] = result.get("milliseconds", {}) | milliseconds_of_both(timings)
        result["notes"] |= timings.failures

    def time_in_graph(self, result: Result, name: str, work: Work) -> None:
        """Add the time of a step in a CUDA graph, or why there is none."""
        try:
            result["graph_milliseconds"][name] = milliseconds(time_in_graph(work, 0.1 if self.quick else 0.6))
        except Exception as error:
            result["notes"][f"{name} in a graph"] = one_line(error)

    def errors(self, A: Tensor, G: Tensor, names: Sequence[str]) -> Result:
        """Largest relative errors against float64, of matroot in the whole batch, of baselines in the first matrices.

        Where a decomposition in float64 is slow, of a subset.
        """
        batch, n = A.shape[:2]
        exact = min(batch, DISTINCT, DISTINCT if n <= 64 else 16 if n <= 128 else 4)
        few, gradients = A[:exact].cpu().double(), G[:exact].cpu().double()
        true = [T.to(self.device) for T in value_and_gradient(partial(EighRoot.apply, False), few, gradients)]
        place = torch.arange(batch, device=self.device) % DISTINCT
        checked = place < exact
        found: Result = {"errors": {}, "matrices_checked": int(checked.sum())}
        for name in names:
            whole = name == "auto"
            try:
                got = value_and_gradient(DIFFERENTIABLE[name], *((A, G) if whole else (A[:exact], G[:exact])))
                pairs = [(g[checked], t[place[checked]]) if whole else (g, t) for g, t in zip(got, true, strict=True)]
                root, gradient = (rounded(largest_error(*pair)) for pair in pairs)
                found["errors"][name] = {"root": root, "gradient": gradient}
            except Exception as error:
                found["errors"][name] = {"root": None, "gradient": None, "note": one_line(error)}
        return found

    def rates(self, result: Result) -> Result:
        """Achieved rates in a graph as shares of the roofline, and what limits them."""
        times = result["graph_milliseconds"]
        if "root" not in times:
            return {"bound": "Not measured in a graph."}
        batch, n = result["batch"], result["n"]
        products = result["products"]["forward"] + result["products"]["backward"]
        time_us = 1e3 * times["root"]["median"]
        alone = times.get("root of one matrix")
        flops, moved = work_of(batch, n, products)
        least = lower_bounds(batch, n, products, self.roofline)
        teraflops, terabytes = 1e-6 * flops / time_us, 1e-6 * moved / time_us
        return {
            "teraflops_in_a_graph": teraflops,
            "terabytes_per_second_in_a_graph": terabytes,
            "share_of_ceiling": roofline_shares(teraflops, terabytes, n, self.roofline),
            "floors_microseconds": least,
            "bound": limiting_factor(time_us, alone and 1e3 * alone["median"], least),
        }

    def measure_variants(self, result: Result) -> None:
        """Add times of the inverse root and of both roots in a graph, and their ratios to the root."""
        A, G = self.problem(result["batch"], result["n"])
        X = A.detach().requires_grad_()
        times = result["graph_milliseconds"]
        for name, function in VARIANTS.items():
            if self.seconds_left() < 0:
                result["notes"][name] = NO_TIME
                continue
            self.time_in_graph(result, name, partial(forward_backward, function, X, G))
            if name in times and "root" in times:
                result.setdefault("ratio_to_root", {})[name] = round(times[name]["median"] / times["root"]["median"], 3)

    def measure_compiled(self, result: Result, time_limit: float = 60.0) -> None:
        """Add times of the same solver through ``torch.compile``."""
        time_limit = min(time_limit, self.seconds_left())
        if time_limit < 5:
            result["notes"][COMPILED] = NO_TIME
            return
        A, G = self.problem(result["batch"], result["n"])
        try:
            work, result["compile_seconds"] = compiled(A, G, time_limit)
        except Exception as error:
            result["notes"][COMPILED] = one_line(error)
            return
        self.time(result, {COMPILED: work}, 1.5)


def count(A: Tensor, G: Tensor) -> Result:
    """Products per matrix of a forward and backward pass; ``ASSUMED`` where kernels compute them uncounted."""
    X = A.detach().requires_grad_()
    with matroot.count_operations(matrices=len(A)) as forward:
        S = matroot.sqrtm(X)
    with matroot.count_operations(matrices=len(A)) as backward:
        torch.autograd.grad(S, X, G)
    if forward.uncounted or backward.uncounted:
        return ASSUMED
    return {"forward": forward.products, "backward": backward.products, "source": "counted"}


def measure_all(
    run: GpuRun, shapes: Sequence[Shape], results: list[Result], save: Callable[[list[Result]], object]
) -> None:
    """Everything for these shapes, what matters most first; ``save`` is called whenever the results grow."""
    for done, (batch, n) in enumerate(shapes):
        results.append(run.measure_shape(batch, n, len(shapes) - done))
        save(results)
        print(f"{batch} x {n}: done, {run.seconds_left():.0f} s left", file=sys.stderr, flush=True)
    for result in results:
        run.measure_variants(result)
        save(results)
    for result in results:
        if (result["batch"], result["n"]) in TO_COMPILE:
            run.measure_compiled(result)
            save(results)
