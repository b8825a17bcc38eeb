"""``matroot compare``."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from .._terminal import CommandError, importing
from ..train.style.recipe import NAME as STYLE

USAGE = """usage: matroot compare RECIPE [--presets NAME ...] [--seeds N ...] [--variant NAME] [--out DIR] [OPTIONS]
       matroot compare style [--runs DIR ... --weights-lpips FILE] [OPTIONS]
       matroot compare --show FILE.json ... [--page PAGE.html]
       matroot compare --markdown FILE.json ...

Trains a recipe with several presets and seeds, and compares them with each other and with the paper. style times
its transforms, and scores runs that are there.
matroot compare RECIPE --help has all options, recipe fields included; matroot train --list has the recipes."""


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, and how the runs are made."""

    presets: tuple[str, ...] = ()
    """Presets to compare; baseline, default and those of the paper's tables unless given."""
    seeds: tuple[int, ...] = (0, 1)
    """A run with each."""
    out: Path | None = None
    """Folder of the runs, the result file and the page; runs/compare-RECIPE-VARIANT-DATASET unless given."""
    jobs: int = 1
    """Runs made at once, each in a process of its own; they share a GPU."""
    time_limit: float | None = None
    """Seconds; no epoch is begun that would end later, and the same command goes on."""
    no_timing: bool = False
    """Do not time steps before the runs."""
    data: Path | None = None
    """Folder of the data set; otherwise MATROOT_DATA, then the usual places."""
    device: str | None = None
    """Such as cpu or cuda:1; the GPU if there is one."""
    workers: int = 2
    """Processes that read images, for each run; data held on the device needs none."""
    no_graph: bool = False
    """Capture no steps in CUDA graphs."""


def run(arguments: Sequence[str]) -> int:
    """Make the runs of a comparison, or show the files of earlier ones; returns the exit status."""
    arguments = list(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--show":
        return _show(arguments[1:])
    if arguments[0] == "--markdown":
        return _print_markdown(arguments[1:])
    if arguments[0].startswith("-"):
        raise CommandError(f"{USAGE}\n\nthe recipe comes first, got {arguments[0]}")
    if arguments[0] == STYLE:
        from .compare_style import run as compare_style

        return compare_style(arguments[1:], _console())
    return _compare(arguments)


def _show(arguments: list[str]) -> int:
    files, _, page = _split(arguments, "--page")
    unknown = [argument for argument in (*files, *page) if argument.startswith("-")]
    if not files or unknown or len(page) > 1 or ("--page" in arguments and not page):
        raise CommandError(f"{USAGE}\n\n--show takes result files, and --page one file to write")
    from ..train.compare.session import show_files

    return show_files([Path(file) for file in files], Path(page[0]) if page else None, _console())


def _print_markdown(files: list[str]) -> int:
    if not files or any(file.startswith("-") for file in files):
        raise CommandError(f"{USAGE}\n\n--markdown takes result files")
    from ..train.compare.markdown import section
    from ..train.compare.results import read

    print("\n\n".join([section(read(Path(file))) for file in files]))
    return 0


def _split(arguments: list[str], flag: str) -> tuple[list[str], list[str], list[str]]:
    place = arguments.index(flag) if flag in arguments else len(arguments)
    return arguments[:place], arguments[place : place + 1], arguments[place + 1 :]


def _compare(arguments: list[str]) -> int:
    from ..train.recipes import RECIPES, TITLES
    from .recipe_arguments import parse

    for flag, plural in (("--preset", "--presets"), ("--seed", "--seeds")):
        if any(argument.partition("=")[0] == flag for argument in arguments):
            raise CommandError(f"{flag} is for one run: matroot compare has {plural}")
    call = parse("matroot compare", arguments, CompareOptions(), RECIPES, TITLES)
    options = call.options
    if options.jobs < 1:
        raise CommandError(f"--jobs must be at least 1, got {options.jobs}")
    if options.workers < 0:
        raise CommandError(f"--workers must be at least 0, got {options.workers}")
    if options.time_limit is not None and not options.time_limit > 0:
        raise CommandError(f"--time-limit must be above 0, got {options.time_limit}")
    if not options.seeds or min(options.seeds) < 0:
        raise CommandError(f"--seeds must be numbers that are not negative, got {' '.join(map(str, options.seeds))}")
    with importing():
        # With torch, the networks and the data, which --help does without.
        from ..train.checks import check, check_effects
        from ..train.compare.plan import BASELINE, DEFAULT, RunOptions, with_preset
        from ..train.compare.session import Request, compare
        from ..train.paper import presets_of

    presets = options.presets or (BASELINE, DEFAULT, *presets_of(call.name))
    for preset in presets:
        check(with_preset(call.recipe, preset))
    # What one of them needs may do nothing in the others.
    with_roots = next((preset for preset in presets if preset != BASELINE), BASELINE)
    check_effects(with_preset(call.recipe, with_roots), call.changed)
    out = options.out or Path("runs", f"compare-{call.name}-{call.variant}-{call.recipe.dataset}")
    request = Request(
        call.name,
        call.variant,
        call.recipe,
        presets,
        options.seeds,
        out,
        shlex.join(["matroot", "compare", *arguments]),
        RunOptions(options.data, options.device, options.workers, False if options.no_graph else None),
        options.jobs,
        options.time_limit,
        not options.no_timing,
    )
    return compare(request, _console())


def _console() -> Console:
    # Lines for files and pipes are not wrapped at 80 characters.
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)
