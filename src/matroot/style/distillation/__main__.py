"""``python -m matroot.style.distillation``: distil a style network from a teacher and two sets of pictures."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import get_args

from ..._terminal import exit_status
from .recipe import Precision, Recipe
from .run import Options, Summary, distil
from .step import TERMS

LINES = 8
"""Of the table at the end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; 2 for wrong arguments and files."""
    return exit_status(partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    given = vars(_parser().parse_args(arguments))
    recipe = Recipe(**{field.name: given[field.name] for field in fields(Recipe)})
    options = Options(**{field.name: given[field.name] for field in fields(Options)})
    _show(distil(recipe, given["teacher"], given["photos"], given["paintings"], given["out"], options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m matroot.style.distillation",
        description="Distil a style network. Sources of pictures are folders, zip files, or FILE.zip:FOLDER.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    files = parser.add_argument_group("files")
    files.add_argument("--teacher", type=Path, required=True, metavar="FILE", help="weights of the VGG-19 pair, .pth")
    files.add_argument("--photos", nargs="+", required=True, metavar="SOURCE", help="pictures to paint")
    files.add_argument("--paintings", nargs="+", required=True, metavar="SOURCE", help="pictures to paint them like")
    files.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the run")
    how = parser.add_argument_group("how it is run")
    how.add_argument("--device", metavar="NAME", help="such as cpu or cuda:1; CUDA if there is one")
    how.add_argument("--resume", action="store_true", help="go on with the run in that folder; start it if there is none")
    how.add_argument(
        "--time-limit", type=float, default=Options.time_limit, metavar="SECONDS", help="then stop; --resume goes on"
    )
    how.add_argument("--log-every", type=int, default=Options.log_every, metavar="STEPS", help="steps between lines")
    how.add_argument(
        "--save-every", type=int, default=Options.save_every, metavar="STEPS", help="steps between checkpoints and sheets"
    )
    how.add_argument("--compile", action="store_true", help="compile the convolutions with torch.compile")
    how.add_argument("--training-data", default="", metavar="TEXT", help="note in the exported file; the sources if empty")
    how.add_argument("--licence", default="", metavar="TEXT", help="note in the exported file")
    _add_recipe(parser.add_argument_group("recipe"))
    return parser


def _add_recipe(group: "argparse._ArgumentGroup") -> None:
    for field in fields(Recipe):
        flag, text, default = f"--{field.name.replace('_', '-')}", field.metadata["help"], field.default
        if field.name == "precision":
            group.add_argument(flag, choices=get_args(Precision), default=default, help=text)
        elif field.name == "channels":
            group.add_argument(flag, type=_numbers, default=default, metavar="N,N,N,N", help=text)
        else:
            group.add_argument(flag, type=type(default), default=default, metavar="N", help=text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _show(summary: Summary) -> None:
    """A few lines of the history as a table."""
    history = summary.history
    columns = ("step", *TERMS, "milliseconds")
    print("\n" + "".join(f"{name:>13}" for name in columns))
    for k in range(LINES):
        row = history[k * (len(history) - 1) // (LINES - 1)]
        if k == 0 or row is not shown:
            print(f"{row['step']:13}" + "".join(f"{row[name]:13.4f}" for name in columns[1:]))
        shown = row
    print(f"{'finished' if summary.finished else 'not finished'}, {history[-1]['seconds']:.0f} s; {summary.weights}")


if __name__ == "__main__":
    sys.exit(main())
