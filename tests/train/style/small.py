"""Pictures and a recipe of style exchange that trains in a blink."""

from pathlib import Path

from matroot.train.style.recipe import StyleRecipe

from ..data.look_alikes import encoded, picture, write


def small_recipe(**fields):
    """Six steps, unless ``fields`` say otherwise."""
    given = {
        "dataset": "folder",
        "iterations": 6,
        "batch_size": 2,
        "image_size": 32,
        "width": 2,
        "blocks": 1,
        "discriminator_channels": (4, 8),
        "lr": 1e-3,
        "constant_iterations": 2,
        "halve_every": 2,
    }
    return StyleRecipe(**(given | fields))


def cyclegan(folder: Path, tests: bool = True) -> Path:
    """Five paintings, three photos, and two of each for tests, as files of CycleGAN's layout."""
    counts = {"trainA": 5, "trainB": 3} | ({"testA": 2, "testB": 2} if tests else {})
    for k, (name, count) in enumerate(counts.items()):
        for number in range(count):
            write(folder / name / f"{number}.png", encoded(picture(10 * k + number, 40, 36), "PNG"))
    return folder
