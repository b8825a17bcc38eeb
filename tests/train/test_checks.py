"""Recipes that cannot be run are refused before anything is opened."""

import math
from dataclasses import replace

import pytest

from matroot.train.checks import RecipeError, check
from matroot.train.recipes import RECIPES

STEPS = replace(RECIPES["dbn"]["published"], dataset="digits")
COSINE = RECIPES["sovit"]["published"]

WRONG = [
    (replace(STEPS, model="resnet18_dbm"), "unknown model 'resnet18_dbm'; did you mean 'resnet18_dbn'?"),
    (replace(STEPS, dataset="cifar"), "unknown dataset 'cifar'; did you mean 'cifar10"),
    (replace(STEPS, preset="mpa_lya"), "unknown preset 'mpa_lya'; did you mean 'mpa-lya'?"),
    (replace(STEPS, first_preset="nss", first_preset_epochs=1), "unknown preset 'nss'"),
    (replace(STEPS, preset="pi"), "preset pi does not fit resnet18_dbn"),
    (replace(STEPS, preset="baseline", first_preset="ns", first_preset_epochs=1), "baseline is the network without"),
    (replace(STEPS, epochs=0), "epochs must be at least 1, got 0"),
    (replace(STEPS, batch_size=0), "batch_size must be at least 1"),
    (replace(STEPS, seed=-1), "seed must be at least 0"),
    (replace(STEPS, lr=0.0), "lr must be above 0"),
    (replace(STEPS, lr=math.nan), "lr must be finite"),
    (replace(STEPS, lr=math.inf), "lr must be finite"),
    (replace(STEPS, momentum=1.0), "momentum must be at least 0 and below 1"),
    (replace(STEPS, ema=1.5), "ema must be at least 0 and below 1"),
    (replace(STEPS, erasing=1.5), "erasing must be from 0 to 1, got 1.5"),
    (replace(STEPS, clip_norm=-1.0), "clip_norm must be above 0"),
    (replace(STEPS, epochs=60), "milestones 100 200 300 must rise and lie within 60 epochs"),
    (replace(STEPS, milestones=(20, 10)), "milestones 20 10 must rise"),
    (replace(STEPS, milestones=(0, 10)), "milestones 0 10 must rise"),
    (replace(COSINE, epochs=15), "warmup_epochs 5 and cooldown_epochs 10 leave none of 15 epochs"),
    (replace(COSINE, batch_size=31), "batch_size 31 is odd"),
    (replace(COSINE, first_preset="ns"), "first_preset and first_preset_epochs go together"),
    (replace(COSINE, first_preset_epochs=2), "first_preset and first_preset_epochs go together"),
    (replace(COSINE, first_preset="ns", first_preset_epochs=311), "311 are more than 310 epochs"),
    (replace(STEPS, initial_weights="nowhere.safetensors"), "there is no file nowhere.safetensors"),
]


@pytest.mark.parametrize(("recipe", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_recipe_names_its_field(recipe, message):
    with pytest.raises(RecipeError) as wrong:
        check(recipe)
    assert message in str(wrong.value)


@pytest.mark.parametrize("recipe", [STEPS, COSINE])
def test_the_recipes_they_are_made_from_are_right(recipe):
    check(recipe)


@pytest.mark.parametrize("preset", ["default", "baseline", "mpa-lya", "svd-taylor"])
def test_presets(preset):
    check(replace(STEPS, preset=preset))


def test_covariance_heads_take_a_method_without_inverse():
    check(replace(COSINE, preset="pi"))
