"""What a release needs from a GPU, within a time: ``python tools/gpu_release.py --time-limit 900``.

Programs that measure no time share the GPU, all at once; then the others run one after another, alone. What has not
ended by the limit is interrupted: the same call goes on with random batches and training runs, and begins the others
again. On one GPU start ``nvidia-cuda-mps-control -d`` before, so that kernels of several processes overlap. Outputs are
in --logs; the exit status is 0 when all programs ended with 0.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"
GRACE = 20.0
"""Seconds for a program that is interrupted to save what it has."""
POLL = 0.2
"""Seconds between looks at programs that run."""


@dataclass(frozen=True)
class Program:
    """Calls of Python, one after another; one that fails is the last."""

    calls: tuple[str, ...]
    alone: bool = False
    """Whether it measures times."""

    @property
    def command(self) -> str:
        """For the shell."""
        return " && ".join(f"{shlex.quote(sys.executable)} {call}" for call in self.calls)


PROGRAMS = {
    "tests": Program(("tools/gpu_tests.py --parts 8",)),
    "search": Program(
        (
            "-m matroot warmup --n 1 2 4 16 17 20 32 33 36 48 65 68 80 129 132 144 --dtype float32 bfloat16 float16",
            "-m matroot.bench.random_search --batches 10000 --jobs 4",
        )
    ),
    "comparisons": Program(("tools/comparisons.py --timing none --jobs 4 --results benchmarks/results",)),
    "suites": Program(
        ("-m matroot bench --device cuda --suite steps hard large singular overhead float64 first-use",), alone=True
    ),
    "layers": Program(("-m matroot.bench.layer_cost",), alone=True),
    "steps": Program(("tools/comparisons.py --timing only --results benchmarks/results",), alone=True),
    "shapes": Program(("-m matroot bench --device cuda --suite shapes",), alone=True),
}
"""By name; those that run alone in their order."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended; ``status`` is None if the limit ended it."""

    name: str
    status: int | None
    seconds: float
    last: str

    def __str__(self) -> str:
        ended = "interrupted" if self.status is None else f"exit status {self.status}"
        return f"{self.name:12} {ended:14} {self.seconds:5.0f} s  {self.last}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; all unless given")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds for all of them")
    parser.add_argument("--logs", type=Path, default=ROOT / "runs/gpu", help="folder of outputs (%(default)s)")
    parser.add_argument("--results", type=Path, help="where result files that were written are copied to")
    chosen = parser.parse_args(arguments)
    unknown = sorted({*chosen.names} - {*PROGRAMS})
    if unknown:
        parser.error(f"unknown program {unknown[0]}; there are {', '.join(PROGRAMS)}")
    chosen.logs.mkdir(parents=True, exist_ok=True)
    began, deadline = time.time(), time.monotonic() + chosen.time_limit
    outcomes = []
    for outcome in run_all(chosen.names or [*PROGRAMS], deadline, chosen.logs):
        print(outcome, flush=True)
        outcomes.append(outcome)
    if chosen.results is not None:
        copy_newer(began, chosen.results)
    return 0 if all(outcome.status == 0 for outcome in outcomes) else 1


def run_all(names: Sequence[str], deadline: float, logs: Path) -> Iterator[Outcome]:
    """How each program ended, those that share the GPU first."""
    sharing = [name for name in PROGRAMS if name in names and not PROGRAMS[name].alone]
    alone = [name for name in PROGRAMS if name in names and PROGRAMS[name].alone]
    for together in filter(None, (sharing, *([name] for name in alone))):
        yield from run_together(together, deadline, logs)


def run_together(names: Sequence[str], deadline: float, logs: Path) -> Iterator[Outcome]:
    """Begin all of them; how each ended, as they end."""
    start, running = time.monotonic(), {name: _begin(name, logs) for name in names}
    try:
        while running:
            ended = {name: process.returncode for name, process in running.items() if process.poll() is not None}
            if not ended and time.monotonic() >= deadline:
                _interrupt(running.values())
                ended = dict.fromkeys(running)
            for name, status in ended.items():
                del running[name]
                lines = (logs / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().split("\n")
                yield Outcome(name, status, time.monotonic() - start, lines[-1])
            time.sleep(POLL)
    finally:  # after Ctrl-C
        _interrupt(running.values())


def _begin(name: str, logs: Path) -> subprocess.Popen:
    """In a group of its own, with all processes that it begins."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with open(logs / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            ["bash", "-c", PROGRAMS[name].command],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )


def _interrupt(processes: Iterable[subprocess.Popen]) -> None:
    """Interrupt those that run, with all of their groups, and wait for them: all at once, as each may take long."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        os.killpg(process.pid, signal.SIGINT)
    last = time.monotonic() + GRACE
    for process in running:
        try:
            process.wait(max(0.0, last - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def copy_newer(began: float, folder: Path) -> None:
    """Copy result files that were written since."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(RESULTS.glob("*.json")):
        if path.stat().st_mtime >= began:
            shutil.copy(path, folder)


if __name__ == "__main__":
    sys.exit(main())
