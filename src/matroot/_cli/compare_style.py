"""``matroot compare style``."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from .._terminal import CommandError, importing
from ..train.config import unknown

DESCRIPTION = (
    "Time ten whitening and colouring transforms with every preset, and score runs of matroot train style by LPIPS, "
    "beside the paper's figures."
)


@dataclass(frozen=True)
class StyleCompareOptions:
    """What is compared."""

    presets: tuple[str, ...] = ()
    """Presets to time; default and all of the paper's that have an inverse root unless given."""
    no_timing: bool = False
    """Score runs alone."""
    runs: tuple[Path, ...] = ()
    """Run folders of matroot train style to score."""
    weights_lpips: Path | None = None
    """Weights of LPIPS v0.1 with AlexNet; the page on style exchange says which."""
    data: Path | None = None
    """Folder of the pictures; otherwise MATROOT_DATA, then the usual places."""
    device: str | None = None
    """Such as cpu or cuda:1; the GPU if there is one."""
    out: Path = Path("runs/compare-style.json")
    """Result file."""


def run(arguments: Sequence[str], console: Console) -> int:
    """Measure, print the table and write the result file; returns the exit status."""
    options = tyro.cli(
        StyleCompareOptions,
        args=list(arguments),
        prog="matroot compare style",
        description=DESCRIPTION,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    with importing():
        # With torch and the networks, which --help does without.
        from ..train.style.comparison import StyleRequest, compare_style
        from ..train.style.transform_timing import timed_presets

    for preset in options.presets:
        if preset not in timed_presets():
            raise CommandError(unknown("preset", preset, timed_presets()))
    if options.no_timing and not options.runs:
        raise CommandError("nothing to compare: --runs names run folders, and without --no-timing presets are timed")
    request = StyleRequest(
        presets=() if options.no_timing else options.presets or timed_presets(),
        runs=options.runs,
        out=options.out,
        command=shlex.join(["matroot", "compare", "style", *arguments]),
        lpips_weights=options.weights_lpips,
        data=options.data,
        device=options.device,
    )
    return compare_style(request, console)
