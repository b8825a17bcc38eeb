"""``matroot report``."""

import argparse

from ..bench import report


def run(chosen: argparse.Namespace) -> int:
    """Write the page of the files, and their figures if asked to; returns the exit status."""
    return report.write(chosen.files, chosen.out, chosen.figures)
