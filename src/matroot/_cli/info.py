"""``matroot info``: what this machine has, and what ``method="auto"`` does on it for common shapes."""

import argparse
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import matroot

from .._dispatch import BACKENDS, context_of
from .._environment import environment
from ..bench.text import shape

SHAPES = ((1, 64), (64, 48), (10, 64), (16, 128), (256, 32), (4, 256), (256, 256), (1, 512), (10000, 64))
"""Of whitening, second-order heads and covariance pooling in networks."""


def run(chosen: argparse.Namespace) -> int:
    """Print; returns the exit status."""
    show()
    return 0


def show(console: Console | None = None) -> None:
    """Print versions and devices, then the plan for every shape on every device."""
    console = console or Console()
    table = Table("this machine", "", box=SIMPLE_HEAD)
    for name, value in _machine():
        table.add_row(name, value)
    console.print(table)
    for device in _devices():
        console.print(_plans(device))


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


def _plans(device: torch.device) -> Table:
    title = f"What [bold]auto[/bold] does for float32 on {device}; shapes are batch x size"
    table = Table("shape", "method", "gradient", "backend", "why", box=SIMPLE_HEAD, title=title, title_justify="left")
    for batch, n in SHAPES:
        # One number in memory, whatever the shape.
        plan = matroot.choose(torch.empty((), device=device).expand(batch, n, n))
        table.add_row(shape(batch, n), plan.method.name, plan.gradient.name, plan.backend, plan.reason)
    return table
