"""Whether a recipe can be run at all, before anything is opened."""

import math
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Any

import matroot

from .._registry import validate
from .._terminal import CommandError
from ..models import list_models, preset_names
from .config import as_json, counted, defaults, shown, unknown
from .data import list_datasets
from .network import takes_clips
from .recipe import Recipe

_RANGES: tuple[tuple[str, Callable[[Any], bool], tuple[str, ...]], ...] = (
    ("at least 1", lambda value: value >= 1, ("epochs", "batch_size", "image_size", "frames")),
    ("above 0", lambda value: value > 0, ("lr", "classifier_lr_factor", "clip_norm", "whitening_eps")),
    (
        "at least 0",
        lambda value: value >= 0,
        (
            *("seed", "weight_decay", "final_lr", "mixup", "cutmix"),
            *("warmup_epochs", "cooldown_epochs", "first_preset_epochs", "recalibrate"),
        ),
    ),
    ("at least 0 and below 1", lambda value: 0 <= value < 1, ("momentum", "label_smoothing", "ema", "drop_path")),
    ("from 0 to 1", lambda value: 0 <= value <= 1, ("erasing",)),
)


_SCHEDULES = {
    "milestones": ("steps",),
    "warmup_epochs": ("steps", "cosine"),
    "cooldown_epochs": ("cosine",),
    "final_lr": ("cosine",),
}
"""Schedules in which a field has an effect."""


class RecipeError(CommandError):
    """A recipe that cannot be run."""


def check(recipe: Recipe) -> None:
    """RecipeError that names the field, unless names are known, numbers are in range and fields fit together."""
    _check_names(recipe)
    _check_ranges(recipe)
    _check_epochs(recipe)
    if (recipe.mixup or recipe.cutmix) and recipe.batch_size % 2:
        raise RecipeError(f"mixup and cutmix pair the images of a batch: batch_size {recipe.batch_size} is odd")
    if recipe.initial_weights is not None and not Path(recipe.initial_weights).is_file():
        raise RecipeError(
            f"initial_weights: there is no file {recipe.initial_weights}; "
            "name the weights of another run, or None to start from random ones"
        )


def check_effects(recipe: Recipe, changed: Collection[str]) -> None:
    """RecipeError for a field that was changed, not to its default, and does nothing in this run."""
    unchanged = defaults(recipe)
    for field, reason in _without_effect(recipe).items():
        value = as_json(recipe)[field]
        if field in changed and value != unchanged[field]:
            raise RecipeError(f"{field} {shown(getattr(recipe, field))} {reason}")


def _without_effect(recipe: Recipe) -> dict[str, str]:
    """Fields that do nothing, and why: what they are for, and what there is."""
    found = {
        field: f"is for schedule {' and '.join(schedules)}; the schedule is {recipe.schedule}"
        for field, schedules in _SCHEDULES.items()
        if recipe.schedule not in schedules
    }
    if recipe.optimizer != "sgd":
        found["momentum"] = f"is for optimizer sgd; the optimizer is {recipe.optimizer}"
    if not takes_clips(recipe):
        found["frames"] = f"is for clips; {recipe.model} takes images"
    if recipe.preset == "baseline":
        found |= dict.fromkeys(
            ("whitening_eps", "published_init"), "is for decorrelated layers; preset baseline is the network without"
        )
    return found


def _check_names(recipe: Recipe) -> None:
    _check_name("model", recipe.model, list_models())
    _check_name("dataset", recipe.dataset, list_datasets())
    for name in filter(None, (recipe.preset, recipe.first_preset)):
        _check_name("preset", name, preset_names())
        if recipe.model.endswith("_dbn") and name in matroot.presets():
            chosen = matroot.preset(name)
            try:
                validate(chosen["method"], chosen["gradient"], "invsqrt")
            except ValueError as error:
                raise RecipeError(f"preset {name} does not fit {recipe.model}: {error}") from error
    if recipe.first_preset == "baseline" or (recipe.preset == "baseline" and recipe.first_preset):
        raise RecipeError("first_preset changes how roots are computed, and baseline is the network without them")


def _check_name(field: str, name: str, valid: Collection[str]) -> None:
    if name not in valid:
        raise RecipeError(unknown(field, name, valid))


def _check_ranges(recipe: Recipe) -> None:
    for field in fields(Recipe):
        value = getattr(recipe, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise RecipeError(f"{field.name} must be finite, got {value}")
    for wording, holds, names in _RANGES:
        for name in names:
            value = getattr(recipe, name)
            if value is not None and not holds(value):
                raise RecipeError(f"{name} must be {wording}, got {value}")


def _check_epochs(recipe: Recipe) -> None:
    epochs = counted(recipe.epochs, "epoch")
    if recipe.schedule == "steps":
        inside = all(0 < milestone < recipe.epochs for milestone in recipe.milestones)
        if not inside or list(recipe.milestones) != sorted(set(recipe.milestones)):
            raise RecipeError(f"milestones {' '.join(map(str, recipe.milestones))} must rise and lie within {epochs}")
    if recipe.schedule != "one-cycle" and recipe.warmup_epochs + recipe.cooldown_epochs >= recipe.epochs:
        raise RecipeError(
            f"warmup_epochs {recipe.warmup_epochs} and cooldown_epochs {recipe.cooldown_epochs} leave none of {epochs}"
        )
    if (recipe.first_preset is None) != (recipe.first_preset_epochs == 0):
        raise RecipeError("first_preset and first_preset_epochs go together")
    if recipe.first_preset_epochs > recipe.epochs:
        raise RecipeError(f"first_preset_epochs {recipe.first_preset_epochs} are more than {epochs}")
