"""Arguments of commands that run a recipe: its name, a variant, a file, and every field as a flag."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from .._terminal import CommandError
from ..train.config import AnyRecipe, differences, is_run, load_config, unknown

Options = TypeVar("Options")


@dataclass(frozen=True)
class Source:
    """Where the fields of a recipe come from that no flag gives."""

    variant: str
    """Which recipe of this name; matroot train --list has all."""
    config: Path | None = None
    """A .toml or .json file with recipe fields, or the run.json of a run. Flags win over it, it over the variant."""


@dataclass(frozen=True)
class Arguments(Generic[Options, AnyRecipe]):
    """A command's own options and those of a recipe."""

    source: Source
    run: Annotated[Options, tyro.conf.FlagCreatePairsOff]
    recipe: AnyRecipe


@dataclass(frozen=True)
class Call(Generic[Options, AnyRecipe]):
    """What a command is asked to do."""

    name: str
    variant: str
    recipe: AnyRecipe
    of_variant: AnyRecipe
    """The recipe before files and flags."""
    changed: frozenset[str]
    """Fields that a file or flags change; the recipe of another run counts as a variant."""
    options: Options


def parse(
    command: str,
    arguments: Sequence[str],
    options: Options,
    recipes: Mapping[str, Mapping[str, AnyRecipe]],
    titles: Mapping[str, str],
) -> Call[Options, AnyRecipe]:
    """Read ``NAME --flags``; flags stand over ``--config``, that over the variant, so that ``--help`` has real values.

    ``options`` is a frozen dataclass of the command's own options with their defaults, ``recipes`` are those of the
    command, by name and variant, and ``titles`` say what they are. CommandError for a name, a variant or a file that is
    none; tyro prints and exits with status 2 for wrong flags.
    """
    name, flags = arguments[0], list(arguments[1:])
    source = _source(command, name, flags, recipes)
    of_variant = recipes[name][source.variant]
    base = of_variant if source.config is None else load_config(source.config, of_variant)
    parsed = tyro.cli(
        Arguments[type(options), type(base)],
        args=flags,
        default=Arguments(source, options, base),
        prog=f"{command} {name}",
        description=f"{titles[name]}, variant {source.variant}.",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    start = base if source.config is not None and is_run(source.config) else of_variant
    changed = frozenset(difference.field for difference in differences(start, parsed.recipe))
    return Call(name, source.variant, parsed.recipe, of_variant, changed, parsed.run)


def _source(command: str, name: str, flags: list[str], recipes: Mapping[str, Mapping[str, Any]]) -> Source:
    """The recipe has to be known before the flags can be read that change it."""
    if name not in recipes:
        raise CommandError(unknown("recipe", name, recipes))
    variants = recipes[name]
    parser = argparse.ArgumentParser(prog=f"{command} {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--variant", default=next(iter(variants)))
    parser.add_argument("--config", type=Path)
    chosen, _ = parser.parse_known_args(flags)
    if chosen.variant not in variants:
        raise CommandError(unknown(f"variant of {name}", chosen.variant, variants))
    return Source(chosen.variant, chosen.config)
