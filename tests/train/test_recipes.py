"""Recipes are those of the paper, and all of them can be run."""

from dataclasses import replace

import pytest

from matroot.train.checks import check
from matroot.train.recipe import Recipe
from matroot.train.recipes import RECIPES, TITLES

# As the authors describe them.
DBN = Recipe(
    model="resnet18_dbn", dataset="cifar10", epochs=350, batch_size=128, image_size=32, optimizer="sgd", lr=0.1,
    momentum=0.9, weight_decay=5e-4, schedule="steps", milestones=(100, 200, 300), augment="crop-flip",
    published_init=True,
)  # fmt: skip
GCP = Recipe(
    model="resnet50_gcp", dataset="imagenet", epochs=60, batch_size=256, image_size=224, optimizer="sgd", lr=0.0794,
    momentum=0.9, weight_decay=1e-4, schedule="steps", milestones=(30, 45), clip_norm=5.0,
    augment="resized-crop-flip",
)  # fmt: skip
BIRDS = Recipe(
    model="resnet50_gcp", dataset="cub200", epochs=200, batch_size=10, image_size=448, optimizer="sgd", lr=3e-3,
    momentum=0.9, weight_decay=1e-4, schedule="steps", milestones=(50, 100), classifier_lr_factor=20.0,
    augment="finegrained", initial_weights="runs/gcp-imagenet-resnet50_gcp-default-seed0/best.safetensors",
)  # fmt: skip
AIRCRAFT = replace(
    BIRDS, dataset="aircraft", batch_size=8, epochs=50, milestones=(21, 40), weight_decay=1e-3, classifier_lr_factor=5.0
)
VIDEO = Recipe(
    model="tea50_tcp", dataset="hmdb51", epochs=15, batch_size=32, image_size=224, frames=8, optimizer="sgd", lr=1e-3,
    momentum=0.9, weight_decay=5e-4, schedule="steps", milestones=(5, 10), clip_norm=20.0, augment="corner-crop-flip",
    freeze_norms=True, initial_weights="runs/video-videos-tea50_tcp-default-seed0/best.safetensors",
)  # fmt: skip
SOVIT = Recipe(
    model="so_vit_7", dataset="imagenet", epochs=300 + 10, batch_size=512, image_size=224, optimizer="adamw", lr=1e-3,
    weight_decay=0.03, schedule="cosine", warmup_epochs=5, cooldown_epochs=10, final_lr=1e-5, ema=0.99996,
    augment="resized-crop-flip", rand_augment="rand-m9-mstd0.5-inc1", mixup=0.8, cutmix=1.0, label_smoothing=0.1,
    erasing=0.25, drop_path=0.1, precision="float16",
)  # fmt: skip
PUBLISHED = [
    ("dbn", "published", DBN),
    ("gcp", "published", GCP),
    ("finegrained", "published", BIRDS),
    ("finegrained", "published-cars", replace(BIRDS, dataset="cars", classifier_lr_factor=10.0)),
    ("finegrained", "published-aircraft", AIRCRAFT),
    ("video", "published", VIDEO),
    ("sovit", "published", SOVIT),
    ("sovit", "published-14", replace(SOVIT, model="so_vit_14", weight_decay=0.05)),
    ("sovit", "published-svd", replace(SOVIT, preset="svd-pade", first_preset="ns", first_preset_epochs=50)),
]
VARIANTS = [(name, variant) for name, variants in RECIPES.items() for variant in variants]


@pytest.mark.parametrize(("name", "variant", "recipe"), PUBLISHED)
def test_published_recipes_are_those_of_the_paper(name, variant, recipe):
    assert RECIPES[name][variant] == recipe


def test_nothing_is_done_that_a_recipe_does_not_ask_for():
    """The defaults of fields that the published recipes do not name."""
    minimal = Recipe(
        model="m", dataset="d", epochs=1, batch_size=1, image_size=1, lr=1.0, weight_decay=0.0, schedule="steps"
    )
    switches = ("milestones", "clip_norm", "label_smoothing", "mixup", "cutmix", "rand_augment", "erasing", "ema")
    switches += ("freeze_norms", "first_preset", "initial_weights", "channels_last", "compile", "published_init")
    assert not any(getattr(minimal, name) for name in switches)
    assert (minimal.preset, minimal.classifier_lr_factor, minimal.precision) == ("default", 1.0, "float32")


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
