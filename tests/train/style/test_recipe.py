"""Recipes of style exchange: what was published, the rate of each step, what is refused."""

from dataclasses import replace

import pytest

from matroot.train.style.recipe import NAME, STYLE_RECIPES, StyleRecipe, StyleRecipeError, check, learning_rate

from .small import small_recipe

VARIANTS = STYLE_RECIPES[NAME]


def test_published():
    """Adam 1e-4 (.5, .999), decay 1e-4, batch 4, clip 5, 100,000 steps, 216 pixels, 10/10/1/1."""
    recipe = VARIANTS["published"]
    assert recipe == StyleRecipe()
    assert (recipe.lr, recipe.beta1, recipe.beta2, recipe.weight_decay) == (1e-4, 0.5, 0.999, 1e-4)
    assert (recipe.batch_size, recipe.clip_norm, recipe.iterations, recipe.image_size) == (4, 5, 100_000, 216)
    weights = (recipe.reconstruction_weight, recipe.cycle_weight, recipe.style_weight, recipe.content_weight)
    assert weights == (10, 10, 1, 1)
    assert (recipe.width, recipe.blocks, recipe.discriminator_channels) == (64, 4, (64, 128, 256, 512))
    assert not recipe.published_style_code


def test_the_rate_is_halved_every_ten_thousand_after_a_hundred_thousand():
    recipe = VARIANTS["published"]
    rates = {0: 1, 99_999: 1, 100_000: 1, 109_999: 1, 110_000: 1 / 2, 119_999: 1 / 2, 120_000: 1 / 4, 150_000: 1 / 32}
    for step, factor in rates.items():
        assert learning_rate(recipe, step) == pytest.approx(1e-4 * factor)


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_can_be_run(variant):
    check(VARIANTS[variant])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset": "ukiyoe"}, "unknown dataset 'ukiyoe'; did you mean 'ukiyoe2photo'"),
        ({"iterations": 0}, "iterations must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"lr": 0.0}, "lr must be above 0, got 0.0"),
        ({"lr": float("nan")}, "lr must be finite, got nan"),
        ({"cycle_weight": float("inf")}, "cycle_weight must be at least 0, got inf"),
        ({"clip_norm": -1.0}, "clip_norm must be above 0, got -1.0"),
        ({"beta2": 1.0}, "beta2 must be at least 0 and below 1, got 1.0"),
        ({"discriminator_channels": ()}, "discriminator_channels must name one convolution at least"),
        ({"discriminator_channels": (4, 0)}, "discriminator_channels must be at least 1 each, got 0"),
        ({"image_size": 34}, "image_size must be a multiple of 4 and at least 32 .*, got 34"),
        ({"image_size": 28}, "at least 32"),
        ({"discriminator_channels": (2, 2, 2, 2)}, "at least 64 for discriminators of 4 convolutions, got 32"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(StyleRecipeError, match=message):
        check(replace(small_recipe(), **fields))
    check(small_recipe(clip_norm=None))
