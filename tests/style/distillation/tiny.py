"""A teacher, pictures and a recipe that train in a blink."""

import numpy as np
import torch
from PIL import Image

from matroot.style.distillation.recipe import Recipe
from matroot.style.distillation.teacher import DECODER, ENCODER

WIDTHS = (3, 4, 4, 5, 5, 6, 6, 6, 6, 7)
"""Channels that the convolutions of the encoder give."""


def teacher_state():
    """Tables with the names of the real file, in its precision, and a few channels."""
    generator = torch.Generator().manual_seed(5)

    def convolutions(names, channels):
        state = {}
        for name, read, given in zip(names, channels[:-1], channels[1:], strict=True):
            side = 1 if name == "0" else 3
            scale = (2 / (read * side * side)) ** 0.5
            state[f"{name}.weight"] = (scale * torch.randn(given, read, side, side, generator=generator)).half()
            # Positive: with so few channels, features that ReLU sets to zero everywhere would leave no gradient.
            state[f"{name}.bias"] = (0.5 * torch.rand(given, generator=generator)).half()
        return state

    return {
        "encoder": convolutions(ENCODER, (3, *WIDTHS)),
        "decoder": convolutions(DECODER, (7, 6, 6, 6, 6, 5, 5, 4, 4, 3)),
    }


def write_pictures(folder, count, seed):
    """Blurred noise in JPEG files of several sizes."""
    folder.mkdir()
    generator = np.random.default_rng(seed)
    for k in range(count):
        small = generator.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        Image.fromarray(small).resize((40 + 7 * k, 36), Image.Resampling.BICUBIC).save(folder / f"{k}.jpg")


def tiny_recipe(**fields):
    """A recipe of 6 steps, unless ``fields`` say otherwise."""
    given = {"steps": 6, "pairs": 2, "crop": 32, "channels": (4, 5, 6), "warmup": 2, "imitated": 0.5}
    return Recipe(**(given | fields))
