"""The comparisons of docs/results.md, made within a time: ``python tools/comparisons.py --time-limit 900``.

Each is a call of ``matroot compare``, in a folder of its own below --out. Result files of benchmarks/results are gone
on with: runs in them are not made again. The same call goes on after an interruption or its limit. On one GPU
start ``nvidia-cuda-mps-control -d`` before, so that the kernels of runs overlap. Steps are timed before the runs;
where other programs use the GPU meanwhile, ``--timing none``, and afterwards ``--timing only``.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matroot._terminal import exit_status
from matroot.train.compare.results import read
from matroot.train.recipes import RECIPES

ROOT = Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "benchmarks/results"
LEAST = 20.0
"""Seconds left with which a comparison is still begun."""
TIMING_ONLY = 1
"""Seconds for the runs of a comparison that end before an epoch does: its steps are timed nevertheless."""


@dataclass(frozen=True)
class Comparison:
    """A call of ``matroot compare``."""

    recipe: str
    variant: str
    presets: str
    """Names with spaces between."""
    options: str = ""
    """Of the recipe, where they differ from the variant's."""
    dataset: str | None = None
    """None: that of the variant."""
    seeds: str = "0 1"

    def arguments(self, presets: Sequence[str] | None = None, seeds: Sequence[str] | None = None) -> list[str]:
        """After ``matroot compare``; with presets and seeds in the place of its own."""
        dataset = [] if self.dataset is None else ["--dataset", self.dataset]
        chosen = ["--presets", *(presets or self.presets.split()), "--seeds", *(seeds or self.seeds.split())]
        return [self.recipe, "--variant", self.variant, *dataset, *self.options.split(), *chosen]

    @property
    def file_name(self) -> str:
        """Of its result."""
        dataset = self.dataset or RECIPES[self.recipe][self.variant].dataset
        return f"compare-{self.recipe}-{self.variant}-{dataset}.json"


COMPARISONS = {
    "cifar100": Comparison("dbn", "short", "baseline default mpa-lya ns", dataset="cifar100"),
    "pooling-cifar100": Comparison("gcp", "cifar100", "baseline default mpa-lya ns", "--epochs 20"),
    "clips": Comparison("video", "fight", "baseline default mpa-lya ns"),
    "cifar10": Comparison(
        "dbn",
        "short",
        "baseline default mpa-lya mtp-lya ns svd-clip svd-pi svd-taylor svd-pade ns-lya svd-lya",
        "--epochs 60",
    ),
    "transformer-cifar100": Comparison("sovit", "cifar100", "baseline default mpa-lya ns", "--epochs 20"),
    "transformer-tinyimagenet20": Comparison("sovit", "tinyimagenet20", "baseline default mpa-lya ns pi mtp-lya"),
    "birds": Comparison("gcp", "cub40", "baseline default mpa-lya mtp-lya ns"),
    "published-cifar10": Comparison(
        "dbn",
        "published",
        "baseline default mpa-lya",
        "--precision bfloat16 --channels-last --no-deterministic",
    ),
}
"""By name, in the order in which they are made."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing; returns the exit status: 0 when all runs are finished, 1 when some are not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMPARISONS)}; all unless given")
    parser.add_argument("--presets", nargs="+", help="in the place of each comparison's own")
    parser.add_argument("--seeds", nargs="+", help="likewise (0 1)")
    parser.add_argument("--jobs", type=int, default=8, help="runs at once, which share the GPU (%(default)s)")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds for all of them")
    parser.add_argument("--timing", choices=("first", "none", "only"), default="first", help="of steps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of all runs (%(default)s)")
    parser.add_argument("--results", type=Path, help="where result files are copied to after each comparison")
    chosen = parser.parse_args(arguments)
    unknown = sorted({*chosen.names} - {*COMPARISONS})
    if unknown:
        parser.error(f"unknown comparison {unknown[0]}; there are {', '.join(COMPARISONS)}")
    deadline = time.monotonic() + chosen.time_limit
    finished = True
    for name in chosen.names or COMPARISONS:
        remaining = deadline - time.monotonic()
        if remaining < LEAST:
            print(f"{name}: no time left", flush=True)
            finished = False
            continue
        finished &= compare(name, remaining, chosen)
    return 0 if finished else 1


def compare(name: str, remaining: float, chosen: argparse.Namespace) -> bool:
    """Make one comparison as far as the seconds allow; whether all of its runs are finished."""
    comparison, folder = COMPARISONS[name], chosen.out / name
    result = folder / comparison.file_name
    if not result.exists() and (COMMITTED / comparison.file_name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(COMMITTED / comparison.file_name, result)
    limit = [] if remaining == float("inf") else ["--time-limit", str(int(remaining))]
    if chosen.timing == "only":
        limit = ["--time-limit", str(TIMING_ONLY)]
    elif chosen.timing == "none":
        limit.append("--no-timing")
    own = [*comparison.arguments(chosen.presets, chosen.seeds), "--out", str(folder), "--jobs", str(chosen.jobs)]
    print(f"{name}: {shlex.join(['matroot', 'compare', *own, *limit])}", flush=True)
    start = time.monotonic()
    threads = str(max(1, (os.cpu_count() or 1) // chosen.jobs))
    ended = subprocess.run(
        [sys.executable, "-m", "matroot", "compare", *own, *limit], env={"OMP_NUM_THREADS": threads, **os.environ}
    )
    if result.exists():
        runs = read(result).runs
        made = sum(run.result is not None for run in runs)
        print(f"{name}: {made} of {len(runs)} runs, {time.monotonic() - start:.0f} s", flush=True)
        if chosen.results is not None:
            chosen.results.mkdir(parents=True, exist_ok=True)
            shutil.copy(result, chosen.results)
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
