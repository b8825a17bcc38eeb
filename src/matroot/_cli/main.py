"""The command line: ``matroot info``, ``matroot bench``, ``matroot report``; the same as ``python -m matroot``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matroot

from ..bench.suites import SUITES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 2 for a wrong call, 130 after Ctrl-C, others as the command says."""
    parser = argparse.ArgumentParser(prog="matroot", description="Matrix square roots on this machine.")
    parser.add_argument("--version", action="version", version=f"matroot {matroot.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    info = commands.add_parser("info", help="versions, devices, and what the default does for common shapes")
    info.set_defaults(run=_info)
    _describe_bench(commands.add_parser("bench", help="errors and times of every method on this machine, as JSON"))
    report = commands.add_parser("report", help="result files as one page of HTML")
    report.add_argument("files", nargs="+", type=Path, metavar="FILE", help="written by matroot bench")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="PAGE.html", help="default: %(default)s"
    )
    report.set_defaults(run=_report)
    chosen = parser.parse_args(arguments)
    try:
        return chosen.run(chosen)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "rich":
            raise
        print('the command line draws with rich: pip install "matroot[bench]"', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _info(chosen: argparse.Namespace) -> int:
    from .info import show

    show()
    return 0


def _report(chosen: argparse.Namespace) -> int:
    from ..bench.report import write

    return write(chosen.files, chosen.out)


def _describe_bench(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measure errors and times, and write them to DIR/bench-<device>-<dtype>.json after every group of cases. "
        "It takes about ten minutes on two cores; a run that was interrupted goes on where it stopped. "
        "Exit status 1 if an error is above what theory allows."
    )
    parser.add_argument(
        "--suite",
        nargs="+",
        action="extend",
        default=[],
        choices=SUITES,
        metavar="NAME",
        help=f"what to measure, all unless given: {', '.join(SUITES)}",
    )
    parser.add_argument("--quick", action="store_true", help="few small cases, under a minute in all")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to measure; default cpu")
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), default="float32", help="of the matrices; default float32"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results"),
        metavar="DIR",
        help="folder for the result file; default benchmarks/results",
    )
    parser.add_argument("--fresh", action="store_true", help="start over: forget all that is in the result file")
    parser.set_defaults(run=_bench)


def _bench(chosen: argparse.Namespace) -> int:
    from ..bench.cases import Settings
    from ..bench.runner import run

    settings = Settings(chosen.device, chosen.dtype, chosen.quick)
    return run(settings, chosen.out, chosen.suite, chosen.fresh)
