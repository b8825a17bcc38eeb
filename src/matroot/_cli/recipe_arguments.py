"""Arguments of commands that run a recipe: its name, a variant, a file, and every field as a flag."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import tyro

from .._terminal import CommandError
from ..train.config import load_config, unknown
from ..train.recipe import Recipe
from ..train.recipes import RECIPES, TITLES

Options = TypeVar("Options")


@dataclass(frozen=True)
class Source:
    """Where the fields of a recipe come from that no flag gives."""

    variant: str
    """Which recipe of this name; matroot train --list has all."""
    config: Path | None = None
    """A .toml or .json file with recipe fields, or the run.json of a run. Flags win over it, it over the variant."""


@dataclass(frozen=True)
class Arguments(Generic[Options]):
    """A command's own options and those of a recipe."""

    source: Source
    run: Annotated[Options, tyro.conf.FlagCreatePairsOff]
    recipe: Recipe


@dataclass(frozen=True)
class Call(Generic[Options]):
    """What a command is asked to do."""

    name: str
    variant: str
    recipe: Recipe
    of_variant: Recipe
    """The recipe before files and flags."""
    options: Options


def parse(command: str, arguments: Sequence[str], options: Options) -> Call[Options]:
    """Read ``NAME --flags``; flags stand over ``--config``, that over the variant, so that ``--help`` has real values.

    ``options`` is a frozen dataclass of the command's own options with their defaults. CommandError for a name,
    a variant or a file that is none; tyro prints and exits with status 2 for wrong flags.
    """
    name, flags = arguments[0], list(arguments[1:])
    source = _source(command, name, flags)
    of_variant = RECIPES[name][source.variant]
    base = of_variant if source.config is None else load_config(source.config, of_variant)
    parsed = tyro.cli(
        Arguments[type(options)],
        args=flags,
        default=Arguments(source, options, base),
        prog=f"{command} {name}",
        description=f"{TITLES[name]}, variant {source.variant}.",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return Call(name, source.variant, parsed.recipe, of_variant, parsed.run)


def _source(command: str, name: str, flags: list[str]) -> Source:
    """The recipe has to be known before the flags can be read that change it."""
    if name not in RECIPES:
        raise CommandError(unknown("recipe", name, RECIPES))
    variants = RECIPES[name]
    parser = argparse.ArgumentParser(prog=f"{command} {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--variant", default=next(iter(variants)))
    parser.add_argument("--config", type=Path)
    chosen, _ = parser.parse_known_args(flags)
    if chosen.variant not in variants:
        raise CommandError(unknown(f"variant of {name}", chosen.variant, variants))
    return Source(chosen.variant, chosen.config)
