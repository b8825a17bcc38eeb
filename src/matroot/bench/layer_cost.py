"""What the layers cost in training on a GPU: ``python -m matroot.bench.layer_cost``.

A ResNet-18 step on 128 images of 32 x 32 with one decorrelated batch normalisation in place of the first batch
normalisation, and covariance pooling of 256 channels next to a ResNet-50 at 224 pixels; bfloat16, channels last.
Needs torchvision.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import nn as layers
from .solver import Result
from .timer import race, reason, replay, save, spread

Step = Callable[[], object]


def residual_network(batch: int, decorrelated: bool, device: str) -> Step:
    """A training step of ResNet-18 for small images: forward, backward, SGD."""
    from torchvision.models import resnet18  # pyright: ignore[reportMissingImports]

    model = resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    if decorrelated:
        model = layers.convert_decorrelated_batchnorm(model, "bn1", eps=1e-2)
    model = model.to(device).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    images, labels = _data(batch, 32, device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step


def large_network(batch: int, device: str) -> Step:
    """Forward and backward of ResNet-50 at 224 pixels."""
    from torchvision.models import resnet50  # pyright: ignore[reportMissingImports]

    model = resnet50().to(device).to(memory_format=torch.channels_last)
    images, labels = _data(batch, 224, device)
    return partial(_forward_backward, model, images, lambda scores: nn.functional.cross_entropy(scores, labels))


def covariance_pooling(batch: int, position: int, device: str) -> Step:
    """Forward and backward of the pooling layer on 2048 channels, of position x position features."""
    pool = layers.CovariancePool(2048).to(device)
    features = torch.randn(batch, 2048, position, position, device=device).to(torch.bfloat16).relu()
    features = features.to(memory_format=torch.channels_last).requires_grad_()
    return partial(_forward_backward, pool, features, lambda pooled: pooled.float().square().sum())


def _data(batch: int, size: int, device: str) -> tuple[Tensor, Tensor]:
    images = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (batch,), device=device)


def _forward_backward(model: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor]) -> None:
    model.zero_grad(set_to_none=True)
    with torch.autocast(x.device.type, torch.bfloat16):
        value = loss(model(x))
    value.backward()


def measure(device: str, quick: bool) -> list[Result]:
    """Both comparisons: times of all contestants, and ratios of medians."""
    small, large = (4, 2) if quick else (128, 256)
    pairs: dict[str, dict[str, Step]] = {
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
    results: list[Result] = []
    for title, contestants in pairs.items():
        laps, failures = race(contestants, 1 if quick else 6, device, patience=10.0)
        times = {name: {kind: spread(t) for kind, t in lap.items()} for name, lap in laps.items()}
        result: Result = {"case": title, "milliseconds": times, "failures": failures}
        if device == "cuda":
            result["graph_milliseconds"] = _in_graphs(contestants, failures)
        results.append(result)
    return results


def _in_graphs(contestants: dict[str, Step], failures: dict[str, str]) -> Result:
    graphs: Result = {}
    for name, step in contestants.items():
        try:
            graphs[name] = spread(replay(step))
        except Exception as error:
            failures[f"{name}, in a graph"] = reason(error)
    return graphs


def show(results: Sequence[Result]) -> None:
    for result in results:
        print(f"\n{result['case']}: ms back to back, alone, in a graph; ratios to the first")
        first = None
        for name, times in result["milliseconds"].items():
            columns = [times["back_to_back"]["median"], times["single"]["median"]]
            if name in result.get("graph_milliseconds", ()):
                columns.append(result["graph_milliseconds"][name]["median"])
            first = first or columns
            ratios = " ".join(f"{c / f:7.3f}" for c, f in zip(columns, first, strict=False))
            print(f"{name:27} " + " ".join(f"{c:9.3f}" for c in columns) + f"   {ratios}")
        for name, why in result["failures"].items():
            print(f"{name}: {why}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m matroot.bench.layer_cost", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="tiny batches, to see that everything runs")
    chosen = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results = measure(device, chosen.quick)
    name = torch.cuda.get_device_name().replace(" ", "-").lower() if device == "cuda" else "cpu"
    path = chosen.out / f"layers-{name}.json"
    save(path, "python -m matroot.bench.layer_cost", results)
    show(results)
    print(f"raw results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
