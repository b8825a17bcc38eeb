"""``matroot warmup``: compile kernels ahead, in parallel; Triton keeps them on disk for the processes that follow."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

import matroot

from .._autograd.ops import minimax_roots, smith_solve
from .._dispatch import BACKENDS, context_of
from .._terminal import CommandError
from .._timer import one_line
from ..backends.triton.minimax import batches_of_all_kernels
from ..bench.text import shape

COTANGENTS = {"root": (True, False), "inverse root": (False, True), "both roots": (True, True)}
"""Gradients, and of which of the two roots the cotangent is there."""


@dataclass(frozen=True)
class Task:
    """One call that compiles what is needed for it; ``output`` is None for the roots themselves."""

    batch: int
    n: int
    dtype: str
    output: str | None = None

    def __str__(self) -> str:
        what = "roots" if self.output is None else f"gradient of {self.output}"
        return f"{what}, {shape(self.batch, self.n)}, {self.dtype}"

    def run(self, device: torch.device) -> None:
        """Compile, launch, and wait for the device."""
        self.launch(device)[0, 0, 0].item()

    def launch(self, device: torch.device) -> Tensor:
        """The operators of ``torch.compile``, which call kernels and nothing else; the identity suits every path."""
        A = torch.eye(self.n, dtype=getattr(torch, self.dtype), device=device).repeat(self.batch, 1, 1)
        if self.output is None:
            return minimax_roots(A, 0.0)[0]
        S, R = (A if there else None for there in COTANGENTS[self.output])
        return smith_solve(A, A, S, R, 0.0)


def tasks_for(sizes: Sequence[int], dtypes: Sequence[str], device: torch.device) -> Iterator[Task]:
    """Roots for every dtype, and gradients, for which all dtypes are float32, of batches that differ in their kernels.

    Neighbours differ in size: they compile different kernels, and processes do not wait for each other.
    """
    batches = zip_longest(*[[(n, batch) for batch in batches_of_all_kernels(n, device)] for n in sizes])
    for shapes in batches:
        for output, names in ((None, dtypes), *((output, ("float32",)) for output in COTANGENTS)):
            for dtype in names:
                for n, batch in filter(None, shapes):
                    yield Task(batch, n, dtype, output)


def run(chosen: argparse.Namespace) -> int:
    """Compile; returns the exit status: 0, 1 where nothing can be compiled or a kernel could not be."""
    if not torch.cuda.is_available():
        return _fail("there is no CUDA device here, and kernels are compiled for the device at hand")
    device = _device(chosen.device)
    sizes = list(dict.fromkeys(chosen.n))
    reasons = {n: why for n in sizes if (why := _why_no_kernel(device, n))}
    if len(reasons) == len(sizes):
        return _fail("; ".join(dict.fromkeys(reasons.values())))
    for why in reasons.values():
        print(f"left out: {why}")
    tasks = [*tasks_for([n for n in sizes if n not in reasons], list(dict.fromkeys(chosen.dtype)), device)]
    return compile_all(tasks, device, min(chosen.jobs or os.cpu_count() or 1, len(tasks)), Console())


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        raise CommandError(f"--device must name a CUDA device of this machine, such as cuda:0, got {name!r}")
    return device


def _why_no_kernel(device: torch.device, n: int) -> str | None:
    context = context_of(torch.empty((), device=device).expand(1, n, n))
    return BACKENDS["triton"].why_unsupported(context, matroot.Minimax(), matroot.Smith())


def _fail(why: str) -> int:
    print(f"matroot warmup: {why}", file=sys.stderr)
    return 1


def compile_all(tasks: Sequence[Task], device: torch.device, jobs: int, console: Console) -> int:
    """Run tasks in so many processes and say what they compiled; one that fails does not stop the others."""
    start = time.perf_counter()
    compiled: list[str] = []
    failures = 0
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        TemporaryDirectory() as folder,
        Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress,
        # Spawned: CUDA does not survive a fork.
        ProcessPoolExecutor(jobs, get_context("spawn"), _start_process, (folder,)) as pool,
    ):
        bar = progress.add_task(f"compiling in {jobs} processes", total=len(tasks))
        waiting: dict[Future[list[str]], Task] = {pool.submit(_run_task, task, device): task for task in tasks}
        for done in as_completed(waiting):
            try:
                compiled += done.result()
            except Exception as error:
                failures += 1
                print(f"{waiting[done]}: {one_line(error)}", file=sys.stderr)
            progress.advance(bar)
    spent = time.perf_counter() - start
    from triton import knobs

    text = f"{len(compiled)} kernels compiled in {spent:.0f} s, the others were there; all are in {knobs.cache.dir}"
    console.print(text, markup=False, soft_wrap=True, highlight=False)
    return 1 if failures else 0


_lock: Any = None


def _start_process(folder: str) -> None:
    global _lock
    from ..backends.triton.compile_lock import CompileLock

    _lock = CompileLock(Path(folder))
    _lock.install()


def _run_task(task: Task, device: torch.device) -> list[str]:
    """The kernels that were compiled for it."""
    before = len(_lock.compiled)
    task.run(device)
    return _lock.compiled[before:]
