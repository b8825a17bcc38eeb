"""The arguments of ``matroot``; the same as ``python -m matroot``. Imports nothing that imports torch."""

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from .. import __version__
from .._terminal import exit_status, importing
from ..bench.suites import GPU_NAMES, NAMES
from ..train.config import unknown

OWN_ARGUMENTS = ("train", "compare")
"""Commands that read their arguments themselves, from the fields of a recipe."""
EXTRAS = {
    "bench": ("rich", "matplotlib"),
    "style": ("rich", "safetensors", "PIL"),
    "training": ("rich", "tyro", "timm", "torchvision", "safetensors", "sklearn", "scipy", "PIL", "matplotlib"),
}
"""What the commands import that the library does without."""
EXTRA_OF = {"train": "training", "evaluate": "training", "compare": "training", "stylize": "style"}
"""Which of them a command needs; the others need the first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or as ``exit_status`` and the command say; 2 for a wrong call."""
    return exit_status(partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in OWN_ARGUMENTS:
        command, passed = given[0], given[1:]
    else:
        parser = _parser()
        if given and not given[0].startswith("-") and given[0] not in parser.commands:
            parser.error(unknown("command", given[0], parser.commands))
        passed = parser.parse_args(given)
        command = passed.command
    if os.environ.get("NO_COLOR"):
        os.environ.setdefault("PYTHON_TYRO_ANSI_CODES", "False")  # tyro asks for this alone, when it is imported
    try:
        with importing():
            module = import_module(f".{command}", __package__)
        return module.run(passed)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        extra = EXTRA_OF.get(command, "bench")
        if package not in EXTRAS[extra]:
            raise
        print(f'matroot {command} needs {package}: pip install "matroot[{extra}]"', file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    commands: Collection[str] = ()
    """Names of all commands."""


def _parser() -> _Parser:
    parser = _Parser(prog="matroot", description="Matrix square roots on this machine.")
    parser.add_argument("--version", action="version", version=f"matroot {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("info", help="versions, devices, and what the default does for common shapes")
    _describe_warmup(commands.add_parser("warmup", help="compile the kernels for a GPU ahead"))
    commands.add_parser("demo", help="errors and times of every preset next to torch.linalg.eigh, in seconds")
    _describe_bench(commands.add_parser("bench", help="errors and times of every method on this machine, as JSON"))
    report = commands.add_parser("report", help="result files as one page of HTML, and as figures for a paper")
    report.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="written by matroot bench, or by the programs beside it"
    )
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="PAGE.html", help="default: %(default)s"
    )
    report.add_argument("--figures", type=Path, metavar="DIR", help="folder for the figures as SVG, PDF and PNG")
    _describe_stylize(commands.add_parser("stylize", help="photos in the style of paintings"))
    commands.add_parser("train", help="train one of the paper's networks: matroot train --list")
    _describe_evaluate(commands.add_parser("evaluate", help="scores of trained networks, also over several views"))
    commands.add_parser("compare", help="train a network with several presets and seeds, and compare them")
    parser.commands = commands.choices
    return parser


def _describe_bench(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measure errors and times, and write them to DIR/bench-<device>-<dtype>.json after every group of cases. "
        "It takes about ten minutes on two cores; a run that was interrupted is resumed by the same command. "
        "Results of another machine, other versions or other source code are not mixed: --fresh starts over. "
        "Exit status 1 if an error is above what theory allows."
    )
    parser.add_argument(
        "--suite",
        nargs="+",
        action="extend",
        default=[],
        choices=(*NAMES, *GPU_NAMES),
        metavar="NAME",
        help=f"what to measure: {', '.join(NAMES)}, all of these unless given; with --device cuda also "
        f"{', '.join(GPU_NAMES)}, each in a file DIR/gpu-NAME-<device>.json",
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
    parser.add_argument("--fresh", action="store_true", help="start over: discard all that is in the result file")


def _describe_warmup(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compile the kernels of the default method for the GPU at hand, in parallel. Triton keeps them on disk, in "
        "TRITON_CACHE_DIR or ~/.triton/cache, so that no first call has to. Exit status 1 where there is no GPU or no "
        "Triton."
    )
    parser.add_argument(
        "--n",
        nargs="+",
        type=_positive,
        default=[16, 32, 64, 128, 256, 512],
        metavar="N",
        help="sizes of the matrices; default 16 32 64 128 256 512",
    )
    parser.add_argument(
        "--dtype",
        nargs="+",
        choices=("float32", "bfloat16", "float16"),
        default=["float32"],
        metavar="NAME",
        help="of the matrices: float32 (default; also what float64 and complex need), bfloat16, float16",
    )
    parser.add_argument("--device", default="cuda", metavar="NAME", help="such as cuda:1; default cuda")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes; as many as cores unless given")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def _describe_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Evaluate the best weights of runs of matroot train on the test split of their recipe. Probabilities are "
        "averaged over views: --clips 10 --crops 3 is how video networks are published."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--clips", type=_positive, default=1, metavar="N", help="clips of a video; default 1")
    parser.add_argument(
        "--crops", type=_positive, default=1, metavar="N", help="squares of a frame: 1, the middle (default), or 3"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="as in matroot train")
    parser.add_argument("--device", metavar="NAME", help="such as cpu or cuda:1; the GPU if there is one")
    parser.add_argument(
        "--workers", type=_not_negative, default=2, metavar="N", help="processes that read images; default 2"
    )


def _describe_stylize(parser: argparse.ArgumentParser) -> None:
    parser.usage = "matroot stylize PHOTO ... --style PAINTING ... [-o FILE | --out DIR] [OPTIONS]"
    parser.description = (
        "Write photos in the style of a painting, or of several blended. A photo that cannot be read is named and the "
        "others go on; the exit status is then 1."
    )
    parser.add_argument("photos", nargs="+", type=Path, metavar="PHOTO", help="images that give the content")
    parser.add_argument(
        "--style",
        nargs="+",
        action="extend",
        type=Path,
        required=True,
        metavar="PAINTING",
        help="images that give the style",
    )
    parser.add_argument(
        "--weights", nargs="+", type=float, metavar="W", help="shares of several styles; equal unless given"
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("-o", "--output", type=Path, metavar="FILE", help="result of one photo: .png, .jpg or .webp")
    target.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="folder for PHOTO-PAINTING.*; the working folder"
    )
    parser.add_argument("--strength", type=float, default=1.0, metavar="A", help="0 to 1; default 1")
    parser.add_argument("--keep-colors", action="store_true", help="keep the photo's colours, take the brushwork alone")
    parser.add_argument("--max-size", type=int, metavar="N", help="longest side of the result, in pixels")
    parser.add_argument(
        "--style-size", type=int, default=512, metavar="N", help="longest side styles are reduced to; default 512"
    )
    parser.add_argument("--tile", type=int, default=384, metavar="N", help="side of a tile; less needs less memory")
    parser.add_argument(
        "--max-pixels", type=int, default=100_000_000, metavar="N", help="refuse larger images; default 100 million"
    )
    parser.add_argument(
        "--transform",
        choices=("transport", "whitening"),
        default="transport",
        help="transport (default) changes the photo least; whitening gives exactly the style's covariance",
    )
    parser.add_argument(
        "--grain",
        type=float,
        default=4.0,
        metavar="LEVELS",
        help="what varies less is smoothed, and hardly counts; default 4 of 255",
    )
    parser.add_argument(
        "--scales",
        type=int,
        metavar="N",
        help="2 or 3: strokes two or four times as broad; default 1, from 1024 pixels on 2, from 2048 on 3",
    )
    parser.add_argument("--method", default="auto", metavar="NAME", help="how roots are taken; default auto")
    parser.add_argument("--device", metavar="NAME", help="such as cpu or cuda:1; the GPU if there is one")
    parser.add_argument(
        "--half", action="store_true", help="half precision: less memory, and faster where it is built in"
    )
    parser.add_argument("--network", type=Path, metavar="FILE", help="weights of your own instead of the packaged ones")
