"""Times on a GPU, forward and backward of the root: ``python -m matroot.experiments.gpu``.

Peers and product take turns in one run. Wall times include Python; graph times are replays of a captured step.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

import matroot

from .peers import EighRoot, PaperRoot
from .problems import covariances, distance, symmetric, value_and_gradient
from .solver import Result
from .timing import Function, save, seconds, side_by_side, spread

SHAPES = ((1, 64), (64, 48), (10, 64), (1024, 64), (10000, 64), (10000, 32), (10000, 16))


def measure(quick: bool) -> Iterator[Result]:
    """One result per shape."""
    for batch, n in SHAPES[:1] if quick else SHAPES:
        base, up = covariances(min(batch, 200), n), symmetric(min(batch, 200), n)
        repeats = -(-batch // len(base))
        A, G = (T.float().repeat(repeats, 1, 1)[:batch].cuda() for T in (base, up))
        contestants: dict[str, Function] = {
            "auto": matroot.sqrtm,
            "minimax+krylov": partial(matroot.sqrtm, method="minimax", gradient="krylov"),
            "paper": PaperRoot.apply,
            "ns": partial(matroot.sqrtm, **matroot.preset("ns")),
        }
        work: dict[str, Callable[[], object]] = {
            name: partial(value_and_gradient, function, A, G) for name, function in contestants.items()
        }
        times = side_by_side(work, 3 if quick else 12, "cuda", patience=6.0)
        found = value_and_gradient(matroot.sqrtm, A[: len(base)], G[: len(base)])
        true = value_and_gradient(partial(EighRoot.apply, False), base.float().double(), up.float().double())
        errors = [distance(f.cpu(), t).max().item() for f, t in zip(found, true, strict=True)]
        graph = _replay(A, G)
        products = 12 + 12
        yield {
            "batch": batch,
            "n": n,
            "plan": str(matroot.choose(A)),
            "milliseconds": {name: spread(t) for name, t in times.items()} | {"auto in a graph": spread(graph)},
            "root_error": errors[0],
            "gradient_error": errors[1],
            "teraflops_in_a_graph": 2e-12 * products * batch * n**3 / median(graph),
        }


def _replay(A: Tensor, G: Tensor) -> list[float]:
    """Seconds of a captured step, from replays of ten of them."""
    X = A.detach().requires_grad_()

    def step() -> None:
        torch.autograd.grad(matroot.sqrtm(X), X, G)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            step()
    graph.replay()
    return [seconds(graph.replay, "cuda") / 10 for _ in range(30)]


def show(results: Sequence[Result]) -> None:
    names = ("auto", "auto in a graph", "minimax+krylov", "paper", "ns")
    print(f"\n{'batch x n':>12} " + " ".join(f"{name:>15}" for name in names) + "  us; error, of gradient; TF/s")
    for r in results:
        times = " ".join(f"{1e3 * r['milliseconds'][name]['median']:15.1f}" for name in names)
        errors = f"{r['root_error']:.1e}, {r['gradient_error']:.1e}"
        print(f"{r['batch']:>6} x {r['n']:<3} {times}  {errors}  {r['teraflops_in_a_graph']:.1f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.experiments.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="one shape, to see that everything runs")
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("there is no CUDA device here", file=sys.stderr)
        return 1
    results = list(measure(chosen.quick))
    name = torch.cuda.get_device_name().replace(" ", "-").lower()
    path = chosen.out / f"gpu-{name}.json"
    save(path, "python -m matroot.experiments.gpu", results)
    show(results)
    print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
