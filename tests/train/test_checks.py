"""Recipes that cannot be run are refused before anything is opened."""

import math
from dataclasses import replace

import pytest

from matroot.train.checks import RecipeError, check
from matroot.train.recipes import RECIPES

STEPS = replace(RECIPES["dbn"]["published"], dataset="digits")
COSINE = RECIPES["sovit"]["published"]

WRONG = [
    (STEPS, dict(model="resnet18_dbm"), "unknown model 'resnet18_dbm'; did you mean 'resnet18_dbn'?"),
    (STEPS, dict(dataset="cifar"), "unknown dataset 'cifar'; did you mean 'cifar10"),
    (STEPS, dict(preset="mpa_lya"), "unknown preset 'mpa_lya'; did you mean 'mpa-lya'?"),
    (STEPS, dict(first_preset="nss", first_preset_epochs=1), "unknown preset 'nss'"),
    (STEPS, dict(preset="pi"), "preset pi does not fit resnet18_dbn"),
    (STEPS, dict(preset="baseline", first_preset="ns", first_preset_epochs=1), "baseline is the network without"),
    (STEPS, dict(epochs=0), "epochs must be at least 1, got 0"),
    (STEPS, dict(batch_size=0), "batch_size must be at least 1"),
    (STEPS, dict(seed=-1), "seed must be at least 0"),
    (STEPS, dict(lr=0.0), "lr must be above 0"),
    (STEPS, dict(lr=math.nan), "lr must be finite"),
    (STEPS, dict(lr=math.inf), "lr must be finite"),
    (STEPS, dict(momentum=1.0), "momentum must be at least 0 and below 1"),
    (STEPS, dict(ema=1.5), "ema must be at least 0 and below 1"),
    (STEPS, dict(clip_norm=-1.0), "clip_norm must be above 0"),
    (STEPS, dict(epochs=60), "milestones 100 200 300 must rise and lie within 60 epochs"),
    (STEPS, dict(milestones=(20, 10)), "milestones 20 10 must rise"),
    (STEPS, dict(milestones=(0, 10)), "milestones 0 10 must rise"),
    (COSINE, dict(epochs=15), "warmup_epochs 5 and cooldown_epochs 10 leave none of 15 epochs"),
    (COSINE, dict(batch_size=31), "batch_size 31 is odd"),
    (COSINE, dict(first_preset="ns"), "first_preset and first_preset_epochs go together"),
    (COSINE, dict(first_preset_epochs=2), "first_preset and first_preset_epochs go together"),
    (COSINE, dict(first_preset="ns", first_preset_epochs=311), "311 are more than 310 epochs"),
    (STEPS, dict(initial_weights="nowhere.safetensors"), "there is no file nowhere.safetensors"),
]


@pytest.mark.parametrize(("recipe", "changes", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_recipe_names_its_field(recipe, changes, message):
    check(recipe)
    with pytest.raises(RecipeError) as wrong:
        check(replace(recipe, **changes))
    assert message in str(wrong.value)


@pytest.mark.parametrize("preset", ["default", "baseline", "mpa-lya", "svd-taylor"])
def test_presets(preset):
    check(replace(STEPS, preset=preset))


def test_covariance_heads_take_a_method_without_inverse():
    check(replace(COSINE, preset="pi"))
