"""Learning rates as functions of the step: no state, so a resumed run has the rates of one that never stopped."""

import math

from .recipe import Recipe

ONE_CYCLE_RISE = 0.3
"""Share of a one-cycle run in which the rate rises."""
ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = ONE_CYCLE_START * 1e-4
"""Rates at both ends of a one-cycle run, as parts of the highest; these are the defaults of torch's OneCycleLR."""


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, ..., epochs * steps_per_epoch - 1 of a run, before the factors of parameter groups."""
    total = recipe.epochs * steps_per_epoch
    if recipe.schedule == "one-cycle":
        return _one_cycle(recipe.lr, step, total)
    warmup = recipe.warmup_epochs * steps_per_epoch
    if step < warmup:
        return recipe.lr * (step + 1) / warmup
    if recipe.schedule == "steps":
        passed = sum(step >= milestone * steps_per_epoch for milestone in recipe.milestones)
        return recipe.lr * 0.1**passed
    end = total - recipe.cooldown_epochs * steps_per_epoch
    return recipe.final_lr if step >= end else _cosine(recipe.lr, recipe.final_lr, (step - warmup) / (end - warmup))


def _one_cycle(highest: float, step: int, total: int) -> float:
    peak = ONE_CYCLE_RISE * total - 1
    if step <= peak:
        return _cosine(ONE_CYCLE_START * highest, highest, step / peak)
    return _cosine(highest, ONE_CYCLE_END * highest, (step - peak) / (total - 1 - peak))


def _cosine(start: float, end: float, progress: float) -> float:
    """From start to end along half a cosine, for progress in [0, 1]."""
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2
