"""``matroot info``: what this machine has, and what ``method="auto"`` does on it for common shapes. Needs no extra."""

import argparse
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

import torch

import matroot

from .._dispatch import BACKENDS, context_of
from .._environment import environment
from ..bench.text import shape

SHAPES = ((1, 64), (64, 48), (10, 64), (16, 128), (256, 32), (4, 256), (256, 256), (1, 512), (10000, 64))
"""Of whitening, second-order heads and covariance pooling in networks."""


def run(chosen: argparse.Namespace) -> int:
    """Print versions and devices, then the plan for every shape on every device; returns the exit status."""
    print(_columns(list(_machine())))
    for device in _devices():
        print(f"\nWhat auto does for float32 on {device}; shapes are batch x size\n")
        print(_columns([("shape", "method", "gradient", "backend", "why"), *_plans(device)]))
    return 0


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Aligned left, three spaces apart; the last one is as wide as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("   ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows)


def _machine() -> Iterator[tuple[str, str]]:
    found = environment()
    yield "matroot", f"{found['matroot']}, source {found['source']}"
    if found["commit"]:
        yield "commit", found["commit"]
    yield "torch, Python", f"{found['torch']}, {found['python']}"
    yield "Triton", _version("triton")
    yield "processor", f"{found['processor']}, {found['cores']} cores, {found['threads']} for torch"
    yield "compiled code", _state("compiled", torch.device("cpu"))
    for k in range(torch.cuda.device_count()):
        yield f"cuda:{k}", f"{torch.cuda.get_device_name(k)}; kernels: {_state('triton', torch.device('cuda', k))}"
    if not torch.cuda.is_available():
        yield "CUDA", "no device"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _state(backend: str, device: torch.device) -> str:
    """Why the default method does not run on a backend, or that it does."""
    context = context_of(torch.empty(1, 2, 2, device=device))
    return BACKENDS[backend].why_unsupported(context, matroot.Minimax(), matroot.Smith()) or "ready"


def _devices() -> list[torch.device]:
    return [torch.device("cpu"), *(torch.device("cuda", k) for k in range(torch.cuda.device_count()))]


def _plans(device: torch.device) -> Iterator[tuple[str, ...]]:
    for batch, n in SHAPES:
        # One number in memory, whatever the shape.
        plan = matroot.choose(torch.empty((), device=device).expand(batch, n, n))
        yield shape(batch, n), plan.method.name, plan.gradient.name, plan.backend, plan.reason
