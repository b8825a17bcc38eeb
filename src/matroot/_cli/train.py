"""``matroot train``."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .._terminal import CommandError, importing
from ..train.config import differences, unknown
from ..train.recipe import Recipe
from ..train.recipes import RECIPES, TITLES
from ..train.style.recipe import NAME as STYLE
from ..train.style.recipe import STYLE_RECIPES, StyleRecipe
from ..train.style.recipe import TITLE as STYLE_TITLE
from . import train_style
from .recipe_arguments import Call, parse

NAMES = (*RECIPES, STYLE)

WIDTH = 80
"""Columns that the list of recipes needs."""

USAGE = f"""usage: matroot train RECIPE [--variant NAME] [--config FILE] [--out DIR] [--resume] [OPTIONS]
       matroot train --list

RECIPE is one of {", ".join(NAMES)}. All recipe fields are options:
matroot train RECIPE --help has them with the values of the variant."""


@dataclass(frozen=True)
class TrainOptions:
    """How a recipe is run; none of these changes its result."""

    data: Path | None = None
    """Folder of the data set; otherwise MATROOT_DATA, then the usual places."""
    out: Path | None = None
    """Run folder; runs/RECIPE-DATASET-MODEL-PRESET-seedN unless given."""
    resume: bool = False
    """Go on with the run in that folder; start it if there is none."""
    device: str | None = None
    """Such as cpu or cuda:1; the GPU if there is one."""
    workers: int = 2
    """Processes that read images; data held on the device needs none."""
    graph: bool = False
    """Capture steps in a CUDA graph, or say why that cannot be; otherwise where it is possible."""
    no_graph: bool = False
    """Capture nothing."""
    fsdp: bool = False
    """Shard transformers over the processes of torchrun."""
    stop_after: int | None = None
    """Stop after so many epochs of this call; --resume goes on."""
    quiet: bool = False
    """Print nothing but errors."""


def run(arguments: Sequence[str]) -> int:
    """Train, or list what can be trained; returns the exit status."""
    if "--list" in arguments:
        show_recipes()
        return 0
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise CommandError(f"{USAGE}\n\nthe recipe comes first" + (f", got {arguments[0]}" if arguments else ""))
    if arguments[0] not in NAMES:
        raise CommandError(unknown("recipe", arguments[0], NAMES))
    if arguments[0] == STYLE:
        return train_style.run(arguments)
    _train(parse("matroot train", arguments, TrainOptions(), RECIPES, TITLES))
    return 0


def _train(call: Call[TrainOptions, Recipe]) -> None:
    with importing():
        # They import torch, the networks and the data, which --help does without.
        from ..train.checks import check, check_effects
        from ..train.run import train

    options = call.options
    _check_options(options)
    check(call.recipe)
    check_effects(call.recipe, call.changed)
    out = options.out or default_out(call.name, call.recipe)
    # Of the processes that torchrun starts one speaks.
    is_main = os.environ.get("RANK", "0") == "0"
    speaks = is_main and not options.quiet
    if speaks:
        _announce(call, out)
    result = train(
        call.recipe,
        out,
        data=options.data,
        device=options.device,
        resume=options.resume,
        workers=options.workers,
        quiet=options.quiet,
        stop_after=options.stop_after,
        graph=options.graph or (False if options.no_graph else None),
        fsdp=options.fsdp,
    )
    if not is_main or result is None:
        return
    if speaks:
        print(f"best test accuracy {result.best_accuracy:.2%}, in epoch {result.best_epoch} of {result.epochs}")
    weights = out / "best.safetensors"
    if not weights.exists():
        raise CommandError(f"{weights} is missing: the weights of epoch {result.best_epoch}, the best one, are lost")
    if speaks:
        print(f"weights: {weights}")


def _check_options(options: TrainOptions) -> None:
    if options.graph and options.no_graph:
        raise CommandError("--graph and --no-graph exclude each other")
    if options.workers < 0:
        raise CommandError(f"--workers must be at least 0, got {options.workers}")
    if options.stop_after is not None and options.stop_after < 1:
        raise CommandError(f"--stop-after must be at least 1, got {options.stop_after}")


def default_out(name: str, recipe: Recipe) -> Path:
    """The run folder of a recipe, in the working folder."""
    return Path("runs", f"{name}-{recipe.dataset}-{recipe.model}-{recipe.preset}-seed{recipe.seed}")


def show_recipes(console: Console | None = None) -> None:
    """Print recipes with their variants, networks, data sets and presets."""
    with importing():
        from ..models import list_models, preset_names
        from ..train.data import list_datasets

    if console is None:
        console = Console()
        # A narrower terminal breaks lines; rich would leave out columns.
        console.width = max(console.width, WIDTH)
    for name, variants in RECIPES.items():
        console.print(f"[bold]matroot train {name}[/bold]  {TITLES[name]}", highlight=False)
        console.print(_variants(variants))
    console.print(f"[bold]matroot train {STYLE}[/bold]  {STYLE_TITLE}", highlight=False)
    console.print(_style_variants())
    console.print("* without --variant\n", style="dim")
    for title, names in (("networks", list_models()), ("data sets", list_datasets()), ("presets", preset_names())):
        console.print(f"[bold]{title}[/bold]  {', '.join(names)}", highlight=False)


def _variants(variants: dict[str, Recipe]) -> Table:
    return _table("epochs", {name: (one, one.model, one.epochs) for name, one in variants.items()})


def _style_variants() -> Table:
    found = STYLE_RECIPES[STYLE]
    return _table("steps", {name: (one, "style_exchange", one.iterations) for name, one in found.items()})


def _table(length: str, variants: dict[str, tuple[Recipe | StyleRecipe, str, int]]) -> Table:
    """A row a variant: its recipe, its network and how long it is, in the unit that ``length`` names."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column, width in (("  variant", 22), ("data set", 14), ("network", 12)):
        table.add_column(column, min_width=width)
    for column in ("pixels", length, "batch"):
        table.add_column(column, justify="right")
    for k, (variant, (recipe, network, number)) in enumerate(variants.items()):
        numbers = map(str, (recipe.image_size, number, recipe.batch_size))
        table.add_row(f"{' ' if k else '*'} {variant}", recipe.dataset, network, *numbers)
    table.add_row()
    return table


def _announce(call: Call[TrainOptions, Recipe], out: Path) -> None:
    """Print what is about to run, and the paper's figure for it."""
    from ..train.paper import nearest_column, published

    recipe = call.recipe
    print(f"{call.name}, variant {call.variant}: {recipe.model} on {recipe.dataset}, preset {recipe.preset}")
    changed = differences(call.of_variant, recipe)
    if changed:
        print(f"changed from the variant: {', '.join(map(str, changed))}")
    cell = published(call.name, recipe.model, recipe.dataset, recipe.preset)
    if cell is not None:
        column = nearest_column(call.name, recipe.model, recipe.dataset)
        print(f"in the paper: {cell.value:.2f} % {column.measure}, {column.title}")
    print(f"run folder: {out}")
