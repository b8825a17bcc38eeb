"""Which runs a comparison consists of, and where they are."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..._terminal import CommandError
from ..config import as_json, defaults
from ..recipe import Recipe

BASELINE, DEFAULT = "baseline", "default"
"""Presets that are none of the paper's: the network without roots, and matroot's own choice."""
OF_A_RUN = ("preset", "seed")
"""Fields of a recipe in which the runs of a comparison differ."""


@dataclass(frozen=True)
class RunOptions:
    """How runs are made; none of these changes their results."""

    data: Path | None = None
    device: str | None = None
    workers: int = 2
    graph: bool | None = None


@dataclass(frozen=True)
class Run:
    """One run: a preset and a seed."""

    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def log(self) -> Path:
        """What the run printed, where it ran in a process of its own or failed."""
        return self.folder.with_name(f"{self.name}.log")


def plan(recipe: Recipe, presets: Iterable[str], seeds: Iterable[int], out: Path) -> list[Run]:
    """Every preset with the first seed, then with the next: what is there early compares all presets."""
    presets = list(dict.fromkeys(presets))
    return [
        Run(with_preset(recipe, preset, seed), out / f"{preset}-seed{seed}")
        for seed in dict.fromkeys(seeds)
        for preset in presets
    ]


def with_preset(recipe: Recipe, preset: str, seed: int = 0) -> Recipe:
    """The recipe of one run."""
    if preset == BASELINE:
        # It has no roots to compute in another way in its first epochs.
        recipe = replace(recipe, first_preset=None, first_preset_epochs=0)
    return replace(recipe, preset=preset, seed=seed)


def shared_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields that all runs of a comparison share, as JSON has them."""
    return {name: value for name, value in as_json(recipe).items() if name not in OF_A_RUN}


def require_same(where: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """CommandError naming file and fields if a recipe on disk is not the one that is asked for.

    A field that the file does not have is younger than it, and had its default.
    """
    found = {name: value for name, value in defaults(Recipe).items() if name in wanted} | found
    differing = [name for name in (*wanted, *(found.keys() - wanted.keys())) if found.get(name) != wanted.get(name)]
    if differing:
        name = differing[0]
        others = f" (and {', '.join(sorted(differing[1:]))})" if differing[1:] else ""
        raise CommandError(
            f"{where}: made with {name} = {found.get(name)!r}{others}, now it is {wanted.get(name)!r}; "
            "another --out keeps both"
        )
