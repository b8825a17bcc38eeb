"""What a run of style exchange is, and the recipes by variant. The command line is made from this class."""

import math
from dataclasses import dataclass, fields, replace
from typing import Literal

from ..._terminal import CommandError
from ..config import unknown

NAME = "style"
TITLE = "Style exchange between photos and paintings"


@dataclass(frozen=True, kw_only=True)
class StyleRecipe:
    """One run. Two runs of equal recipes on the same kind of machine give the same weights."""

    dataset: str = "monet2photo"
    """Photos and paintings: monet2photo, ukiyoe2photo, cezanne2photo, vangogh2photo, or folder."""
    preset: str = "default"
    """How roots are computed: default, a preset of the paper, or baseline, channels each for themselves."""
    seed: int = 0
    """Of initial weights, order of pictures and mirroring."""

    iterations: int = 100_000
    """Steps of both networks."""
    batch_size: int = 4
    """Photos of one step, and as many paintings."""
    image_size: int = 216
    """Pixels of the side that pictures are resized to; a multiple of 4."""

    lr: float = 1e-4
    """Learning rate of Adam."""
    beta1: float = 0.5
    """Decay of Adam's mean of gradients."""
    beta2: float = 0.999
    """Decay of Adam's mean of their squares."""
    weight_decay: float = 1e-4
    """Added to the gradient, as Adam does it."""
    constant_iterations: int = 100_000
    """Steps before the rate begins to fall."""
    halve_every: int = 10_000
    """Steps after which the rate is halved from then on."""
    clip_norm: float | None = 5.0
    """Largest norm of the gradient of both generators, and of both discriminators."""

    reconstruction_weight: float = 10.0
    """Of the difference between pictures and their reconstruction from their own codes."""
    cycle_weight: float = 10.0
    """Of the difference between pictures and what comes back from the other domain."""
    style_weight: float = 1.0
    """Of the difference between a style and that of the picture it was given to."""
    content_weight: float = 1.0
    """Of the difference between a content and that of the picture it became."""

    width: int = 64
    """Channels of the generators' first layers; all others are multiples."""
    blocks: int = 4
    """Residual blocks of an encoder and of a decoder; transforms are one more."""
    discriminator_channels: tuple[int, ...] = (64, 128, 256, 512)
    """Of the convolutions of each scale."""
    published_style_code: bool = False
    """Average the style feature to one position, as the published code does: colouring is then a scaling."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """Of autocast; roots and their statistics are computed in float32."""
    channels_last: bool = False
    """Keep images channels-last in memory: faster convolutions on a GPU."""


_PUBLISHED = StyleRecipe()
_SHORT = replace(
    _PUBLISHED,
    iterations=10_000,
    constant_iterations=5_000,
    halve_every=2_000,
    image_size=128,
    lr=2e-4,
    precision="bfloat16",
    channels_last=True,
)
STYLE_RECIPES: dict[str, dict[str, StyleRecipe]] = {
    NAME: {
        "short": _SHORT,
        "published": _PUBLISHED,
        "ukiyoe": replace(_SHORT, dataset="ukiyoe2photo"),
        # A few steps on a processor, to see that all works.
        "tiny": replace(
            _SHORT,
            iterations=200,
            constant_iterations=200,
            image_size=64,
            width=8,
            blocks=2,
            discriminator_channels=(16, 32, 64),
            precision="float32",
            channels_last=False,
        ),
    }
}
"""By name and variant, as those of ``matroot.train.recipes``; the first variant is the one nobody has to name."""


def learning_rate(recipe: StyleRecipe, step: int) -> float:
    """The rate of step 0, 1, ..."""
    halvings = max(step - recipe.constant_iterations, 0) // recipe.halve_every
    return recipe.lr * 0.5**halvings


class StyleRecipeError(CommandError):
    """A recipe that cannot be run."""


def check(recipe: StyleRecipe) -> None:
    """StyleRecipeError that names the field, unless names are known, numbers are in range and fields fit together."""
    _check_dataset(recipe)
    for field in fields(recipe):
        value = getattr(recipe, field.name)
        least, wording = _LEAST.get(field.name, (-math.inf, ""))
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if isinstance(number, int | float) and not (least <= number < math.inf):
                raise StyleRecipeError(f"{field.name} must be {wording or 'finite'}, got {number}")
    for name in ("lr", "clip_norm"):
        if getattr(recipe, name) is not None and getattr(recipe, name) <= 0:
            raise StyleRecipeError(f"{name} must be above 0, got {getattr(recipe, name)}")
    for name in ("beta1", "beta2"):
        if not 0 <= getattr(recipe, name) < 1:
            raise StyleRecipeError(f"{name} must be at least 0 and below 1, got {getattr(recipe, name)}")
    if not recipe.discriminator_channels:
        raise StyleRecipeError("discriminator_channels must name one convolution at least")
    _check_size(recipe)


def _check_dataset(recipe: StyleRecipe) -> None:
    # With torch, as the size.
    from .pictures import LAYOUTS

    if recipe.dataset not in LAYOUTS:
        raise StyleRecipeError(unknown("dataset", recipe.dataset, LAYOUTS))


def _check_size(recipe: StyleRecipe) -> None:
    # With torch, which a list of recipes does without.
    from ...models.style_discriminator import smallest_image
    from ...models.style_exchange import STRIDE, STYLE_STRIDE

    least = max(smallest_image(recipe.discriminator_channels), 2 * STYLE_STRIDE)
    if recipe.image_size % STRIDE or recipe.image_size < least:
        raise StyleRecipeError(
            f"image_size must be a multiple of {STRIDE} and at least {least} for discriminators of "
            f"{len(recipe.discriminator_channels)} convolutions, got {recipe.image_size}"
        )


_LEAST = {
    **dict.fromkeys(("iterations", "batch_size", "image_size", "width", "halve_every"), (1, "at least 1")),
    **dict.fromkeys(
        (
            *("seed", "constant_iterations", "blocks", "weight_decay"),
            *("reconstruction_weight", "cycle_weight", "style_weight", "content_weight"),
        ),
        (0, "at least 0"),
    ),
    "discriminator_channels": (1, "at least 1 each"),
}
