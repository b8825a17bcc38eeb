"""``matroot report``."""

import argparse

from ..bench.report import write


def run(chosen: argparse.Namespace) -> int:
    """Write the page of the files; returns the exit status."""
    return write(chosen.files, chosen.out)
