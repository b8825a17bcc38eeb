"""``matroot bench``."""

import argparse

from ..bench.cases import Settings
from ..bench.runner import run as run_suites


def run(chosen: argparse.Namespace) -> int:
    """Measure the chosen suites; returns the exit status."""
    settings = Settings(chosen.device, chosen.dtype, chosen.quick)
    return run_suites(settings, chosen.out, chosen.suite, chosen.fresh)
