"""Cost of the layers in training on a GPU: ``python -m matroot.bench.layer_cost``.

A ResNet-18 step on 128 images of 32 x 32 with one decorrelated batch normalisation in place of the first batch
normalisation, and covariance pooling of 256 channels next to a ResNet-50 at 224 pixels; bfloat16, channels last.
Needs torchvision.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import nn as layers
from .._environment import device_name
from .._terminal import exit_status
from .._timer import Work, milliseconds, milliseconds_of_both, one_line, time_in_graph, time_interleaved
from .formatting import three_digits
from .results import require_writable, save_program
from .text import table

Result = dict[str, Any]

COMPILED = "reduce-overhead"
"""A mode of ``torch.compile``, in which the forward and the backward pass are CUDA graphs."""


def residual_network(batch: int, decorrelated: bool, device: str, mode: str | None = None) -> Work:
    """A training step of ResNet-18 for small images: forward, backward, SGD; ``mode`` is one of ``torch.compile``."""
    from ..models import resnet18_dbn

    model = resnet18_dbn(preset="default" if decorrelated else "baseline")
    model = model.to(device).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    network = model if mode is None else torch.compile(model, mode=mode)
    images, labels = _data(batch, 32, device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()

    return step


def large_network(batch: int, device: str) -> Work:
    """Forward and backward of ResNet-50 at 224 pixels."""
    from ..models import resnet50_gcp

    model = resnet50_gcp(preset="baseline", last_stride=2)
    model = model.to(device).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    images, labels = _data(batch, 224, device)
    return partial(_forward_backward, model, images, lambda scores: nn.functional.cross_entropy(scores, labels))


def covariance_pooling(batch: int, size: int, device: str) -> Work:
    """Forward and backward of the pooling layer on 2048 channels of size x size features."""
    pool = layers.CovariancePool(2048).to(device)
    features = torch.randn(batch, 2048, size, size, device=device).to(torch.bfloat16).relu()
    features = features.to(memory_format=torch.channels_last).requires_grad_()
    return partial(_forward_backward, pool, features, lambda pooled: pooled.float().square().sum())


def _data(batch: int, size: int, device: str) -> tuple[Tensor, Tensor]:
    images = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (batch,), device=device)


def _forward_backward(model: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor]) -> None:
    model.zero_grad(set_to_none=True)
    x.grad = None  # in a network features are no leaf, whose gradients are added up
    with torch.autocast(x.device.type, torch.bfloat16):
        value = loss(model(x))
    value.backward()


def measure(device: str, quick: bool) -> list[Result]:
    """All comparisons: single calls, calls in a row, and calls in a CUDA graph."""
    small, large = (4, 2) if quick else (128, 256)
    comparisons: dict[str, dict[str, Work]] = {
        f"ResNet-18 step, batch {small}": {
            "BatchNorm": residual_network(small, False, device),
            "one DecorrelatedBatchNorm": residual_network(small, True, device),
        },
        f"ResNet-50 forward and backward, batch {large}": {
            "ResNet-50": large_network(large, device),
            "CovariancePool, 7 x 7": covariance_pooling(large, 7, device),
            "CovariancePool, 14 x 14": covariance_pooling(large, 14, device),
        },
    }
    if device == "cuda" and not quick:
        comparisons[f"ResNet-18 step, batch {small}, {COMPILED}"] = {
            "BatchNorm": residual_network(small, False, device, COMPILED),
            "one DecorrelatedBatchNorm": residual_network(small, True, device, COMPILED),
        }
    return [compare(title, entries, device, 1 if quick else 6) for title, entries in comparisons.items()]


def compare(title: str, entries: Mapping[str, Work], device: str, rounds: int) -> Result:
    """Times of some steps, and why some have none."""
    timings = time_interleaved(entries, rounds, device, time_budget=10.0, min_turns=1, back_to_back=True)
    result: Result = {"case": title, "milliseconds": milliseconds_of_both(timings), "failures": timings.failures}
    if device == "cuda" and COMPILED not in title:  # which is in graphs of its own
        result["graph_milliseconds"] = {}
        for name, step in entries.items():
            try:
                result["graph_milliseconds"][name] = milliseconds(time_in_graph(step))
            except Exception as error:
                result["failures"][f"{name}, in a graph"] = one_line(error)
    return result


def show(results: Sequence[Result]) -> None:
    """Print times, and ratios to the first entry."""
    for result in results:
        print(f"\n{result['case']}: ms in a row, single, in a graph; ratios to the first")
        rows, first = [], None
        for name, times in result["milliseconds"].items():
            graph = result.get("graph_milliseconds", {}).get(name)
            medians = [times["back_to_back"]["median"], times["single"]["median"], graph and graph["median"]]
            first = first or medians
            ratios = [m / f if m and f else None for m, f in zip(medians, first, strict=True)]
            rows.append([name, *map(three_digits, (*medians, *ratios))])
        print(table(("", "in a row", "single", "graph", "ratio", "ratio", "ratio"), rows))
        for name, why in result["failures"].items():
            print(f"{name}: {why}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.layer_cost", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="tiny batches, to see that everything runs")
    chosen = parser.parse_args(arguments)
    path = chosen.out / f"layers-{device_name()}.json"
    require_writable(path)  # before minutes of measurements
    results = measure("cuda" if torch.cuda.is_available() else "cpu", chosen.quick)
    quick = " --quick" if chosen.quick else ""
    save_program(path, f"python -m matroot.bench.layer_cost{quick}", results)
    show(results)
    print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
