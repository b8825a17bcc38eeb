"""``matroot demo``."""

import argparse

from ..bench.demo import main


def run(chosen: argparse.Namespace) -> int:
    """Measure and print; returns the exit status."""
    return main()
