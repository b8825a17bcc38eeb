"""The command line: ``matroot info`` and ``matroot report``, the same as ``python -m matroot info``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matroot


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1 for files that fail, 2 for a wrong call, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="matroot", description="Matrix square roots on this machine.")
    parser.add_argument("--version", action="version", version=f"matroot {matroot.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("info", help="versions, devices, and what the default does for common shapes")
    report = commands.add_parser("report", help="result files as one page of HTML")
    report.add_argument("files", nargs="+", type=Path, metavar="FILE", help="written by matroot bench")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="PAGE.html", help="default: %(default)s"
    )
    chosen = parser.parse_args(arguments)
    if chosen.command == "report":
        from .report import write

        try:
            return write(chosen.files, chosen.out)
        except KeyboardInterrupt:
            return 130
    try:
        from .info import show
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "rich":
            raise
        print('the command line draws with rich: pip install "matroot[experiments]"', file=sys.stderr)
        return 2
    try:
        show()
    except KeyboardInterrupt:
        return 130
    return 0
