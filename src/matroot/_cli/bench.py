"""``matroot bench``."""

import argparse

from .._terminal import CommandError
from ..bench.cases import Settings
from ..bench.runner import run as run_suites
from ..bench.suites import GPU_NAMES


def run(chosen: argparse.Namespace) -> int:
    """Measure the chosen suites; returns the exit status."""
    on_gpu = [name for name in dict.fromkeys(chosen.suite) if name in GPU_NAMES]
    others = [name for name in chosen.suite if name not in GPU_NAMES]
    if on_gpu and chosen.device != "cuda":
        raise CommandError(f"{', '.join(on_gpu)}: with --device cuda only")
    status = 0
    if others or not on_gpu:
        settings = Settings(chosen.device, chosen.dtype, chosen.quick)
        status = run_suites(settings, chosen.out, others, chosen.fresh)
    if on_gpu and status < 2:  # else the device is missing, a file cannot be used, or Ctrl-C ended it
        from ..bench.gpu.__main__ import main as run_on_gpu

        quick = ["--quick"] if chosen.quick else []
        status = max(status, run_on_gpu(["--suites", *on_gpu, "--out", str(chosen.out), *quick]))
    return status
