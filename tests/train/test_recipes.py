"""Recipes are those of the paper, and all of them can be run."""

from dataclasses import asdict, replace

import pytest

from matroot.train.checks import check
from matroot.train.recipes import RECIPES, TITLES

# As the authors describe them: what is not named here is the default of a recipe.
PUBLISHED = {
    ("dbn", "published"): dict(
        model="resnet18_dbn", dataset="cifar10", epochs=350, batch_size=128, image_size=32, lr=0.1, weight_decay=5e-4,
        schedule="steps", milestones=(100, 200, 300), augment="crop-flip", published_init=True,
    ),
    ("gcp", "published"): dict(
        model="resnet50_gcp", dataset="imagenet", epochs=60, batch_size=256, image_size=224, lr=0.0794,
        weight_decay=1e-4, schedule="steps", milestones=(30, 45), clip_norm=5.0, augment="resized-crop-flip",
    ),
    ("finegrained", "published"): dict(
        model="resnet50_gcp", dataset="cub200", epochs=200, batch_size=10, image_size=448, lr=3e-3, weight_decay=1e-4,
        schedule="steps", milestones=(50, 100), classifier_lr_factor=20.0, augment="finegrained",
        initial_weights="runs/gcp-imagenet-resnet50_gcp-default-seed0/best.safetensors",
    ),
    ("finegrained", "published-cars"): dict(
        model="resnet50_gcp", dataset="cars", epochs=200, batch_size=10, image_size=448, lr=3e-3, weight_decay=1e-4,
        schedule="steps", milestones=(50, 100), classifier_lr_factor=10.0, augment="finegrained",
        initial_weights="runs/gcp-imagenet-resnet50_gcp-default-seed0/best.safetensors",
    ),
    ("finegrained", "published-aircraft"): dict(
        model="resnet50_gcp", dataset="aircraft", epochs=50, batch_size=8, image_size=448, lr=3e-3, weight_decay=1e-3,
        schedule="steps", milestones=(21, 40), classifier_lr_factor=5.0, augment="finegrained",
        initial_weights="runs/gcp-imagenet-resnet50_gcp-default-seed0/best.safetensors",
    ),
    ("video", "published"): dict(
        model="tea50_tcp", dataset="hmdb51", epochs=15, batch_size=32, image_size=224, frames=8, lr=1e-3,
        weight_decay=5e-4, schedule="steps", milestones=(5, 10), clip_norm=20.0, augment="corner-crop-flip",
        freeze_norms=True, initial_weights="runs/video-videos-tea50_tcp-default-seed0/best.safetensors",
    ),
    ("sovit", "published"): dict(
        model="so_vit_7", dataset="imagenet", epochs=310, batch_size=512, image_size=224, optimizer="adamw", lr=1e-3,
        weight_decay=0.03, schedule="cosine", warmup_epochs=5, cooldown_epochs=10, final_lr=1e-5, ema=0.99996,
        augment="resized-crop-flip", rand_augment="rand-m9-mstd0.5-inc1", mixup=0.8, cutmix=1.0, label_smoothing=0.1,
        erasing=0.25, drop_path=0.1, precision="float16",
    ),
}  # fmt: skip
DEFAULTS = dict(
    preset="default", seed=0, frames=8, optimizer="sgd", momentum=0.9, classifier_lr_factor=1.0, milestones=(),
    warmup_epochs=0, cooldown_epochs=0, final_lr=0.0, clip_norm=None, label_smoothing=0.0, mixup=0.0, cutmix=0.0,
    rand_augment=None, erasing=0.0, ema=None, freeze_norms=False, first_preset=None, first_preset_epochs=0,
    initial_weights=None, precision="float32", channels_last=False, compile=False, drop_path=0.0, published_init=False,
)  # fmt: skip
VARIANTS = [(name, variant) for name, variants in RECIPES.items() for variant in variants]


@pytest.mark.parametrize(("name", "variant"), PUBLISHED)
def test_published_recipes_are_those_of_the_paper(name, variant):
    assert asdict(RECIPES[name][variant]) == DEFAULTS | PUBLISHED[name, variant]


def test_larger_transformers_decay_weights_more():
    large = RECIPES["sovit"]["published-14"]
    assert replace(large, model="so_vit_7", weight_decay=0.03) == RECIPES["sovit"]["published"]
    assert (large.model, large.weight_decay) == ("so_vit_14", 0.05)


def test_svd_transformers_start_with_newton_schulz():
    recipe = RECIPES["sovit"]["published-svd"]
    assert (recipe.first_preset, recipe.first_preset_epochs) == ("ns", 50)


def test_every_recipe_has_a_published_and_a_short_variant():
    assert list(RECIPES) == list(TITLES) == ["dbn", "gcp", "finegrained", "video", "sovit"]
    for variants in RECIPES.values():
        assert {"published", "short"} <= set(variants)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_recipe_can_be_run(name, variant, tmp_path):
    """With weights to start from, where it needs them: networks, data sets and presets exist, numbers fit together."""
    recipe = RECIPES[name][variant]
    if recipe.initial_weights:
        weights = tmp_path / "weights.safetensors"
        weights.touch()
        recipe = replace(recipe, initial_weights=str(weights))
    check(recipe)


def test_a_fresh_machine_has_what_the_first_recipe_needs():
    first = next(iter(RECIPES["dbn"].values()))
    assert (first.dataset, first.initial_weights, first.precision) == ("digits", None, "float32")


@pytest.mark.parametrize("epochs", [1, 30, 60])
def test_short_runs_are_as_long_as_wanted(epochs):
    short = RECIPES["dbn"]["short"]
    assert short.epochs <= 30
    check(replace(short, epochs=epochs))
