"""``python -m matroot.style.distillation``: distil a style network from a teacher and two sets of pictures."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, get_args

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
    recipe, options = (_filled(kind, given) for kind in (Recipe, Options))
    _show(distil(recipe, given["teacher"], given["photos"], given["paintings"], given["out"], options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m matroot.style.distillation",
        description="Distil a style network. A SOURCE of pictures is a folder, a zip file, or FILE.zip:FOLDER.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    files = parser.add_argument_group("files")
    files.add_argument("--teacher", type=Path, required=True, metavar="FILE", help="weights of the VGG-19 pair, .pth")
    files.add_argument("--photos", nargs="+", required=True, metavar="SOURCE", help="pictures to paint")
    files.add_argument("--paintings", nargs="+", required=True, metavar="SOURCE", help="pictures to paint them like")
    files.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the run")
    for title, kind in (("how it is run", Options), ("recipe", Recipe)):
        group = parser.add_argument_group(title)
        for field in fields(kind):
            text, default = field.metadata["help"], field.default
            group.add_argument(
                f"--{field.name.replace('_', '-')}", default=default, help=text, **_type(field.name, default)
            )
    return parser


def _type(name: str, default: Any) -> dict[str, Any]:
    """How ``argparse`` reads the option of a field."""
    if isinstance(default, bool):
        return {"action": "store_true"}
    if name == "precision":
        return {"choices": get_args(Precision)}
    if isinstance(default, tuple):
        return {"type": _numbers, "metavar": ",".join("N" * len(default))}
    if default is None or isinstance(default, str):
        return {"metavar": "TEXT"}
    return {"type": type(default), "metavar": "N"}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _filled(kind: type, given: dict[str, Any]) -> Any:
    return kind(**{field.name: given[field.name] for field in fields(kind)})


def _show(summary: Summary) -> None:
    """A few lines of the history as a table."""
    history = summary.history
    columns = ("step", *TERMS, "milliseconds")
    print("\n" + "".join(f"{name:>13}" for name in columns))
    for k in sorted({k * (len(history) - 1) // (LINES - 1) for k in range(LINES)}):
        print(f"{history[k]['step']:13}" + "".join(f"{history[k][name]:13.4f}" for name in columns[1:]))
    print(f"{'finished' if summary.finished else 'not finished'}, {history[-1]['seconds']:.0f} s; {summary.weights}")


if __name__ == "__main__":
    sys.exit(main())
