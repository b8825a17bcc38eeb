"""The score of a run of style exchange: LPIPS between photos and what its generators paint of them."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ... import models
from ..._terminal import CommandError
from ...models.lpips import LPIPS, SMALLEST
from ..recipe import RUN_FORMAT
from .pictures import Pictures, as_network_input, as_unit_range, open_pictures
from .recipe import StyleRecipe
from .run import WEIGHTS

BATCH = 8


@dataclass(frozen=True)
class Score:
    """Of one run."""

    run: str
    """Its folder."""
    preset: str
    seed: int
    dataset: str
    image_size: int
    steps: int
    """It was trained for so many."""
    photos: int
    """Test photos, each painted in the style of one test painting."""
    lpips: float
    """Mean over the photos."""
    std: float
    """Over the photos."""


def score_run(folder: Path, metric: LPIPS, data: Path | None, device: torch.device) -> Score:
    """The score of the weights in a run's folder, on the test pictures of its data set.

    CommandError for a folder that is none, a run without weights, and for pictures that are not found.
    """
    recipe, steps = read_run(folder)
    if recipe.image_size < SMALLEST:
        raise CommandError(f"{folder}: LPIPS needs images of {SMALLEST} pixels, these are of {recipe.image_size}")
    network = models.load(folder / WEIGHTS).to(device).eval()
    if not isinstance(network, models.StyleExchange):
        raise CommandError(f"{folder / WEIGHTS}: expected the weights of style_exchange")
    pictures = open_pictures(recipe.dataset, recipe.image_size, data, device)
    distances = lpips_of_photos(network, pictures, metric.to(device))
    return Score(
        run=str(folder),
        preset=recipe.preset,
        seed=recipe.seed,
        dataset=recipe.dataset,
        image_size=recipe.image_size,
        steps=steps,
        photos=len(distances),
        lpips=statistics.fmean(distances),
        std=statistics.stdev(distances) if len(distances) > 1 else 0.0,
    )


@torch.no_grad()
def lpips_of_photos(network: models.StyleExchange, pictures: Pictures, metric: LPIPS) -> list[float]:
    """A number for each test photo; photo k has the style of test painting k, from the first again where they end."""
    photos, paintings = pictures.photos.test, pictures.paintings.test
    found: list[float] = []
    for start in range(0, len(photos), BATCH):
        own = torch.arange(start, min(start + BATCH, len(photos)), device=photos.device)
        x, styles = as_network_input(photos[own]), as_network_input(paintings[own % len(paintings)])
        found += metric(as_unit_range(x), as_unit_range(network.to_paintings(x, styles))).tolist()
    return found


def read_run(folder: Path) -> tuple[StyleRecipe, int]:
    """The recipe of a run, and the steps of its weights; CommandError if the folder holds none of style exchange."""
    path = folder / "run.json"
    try:
        found: Any = json.loads(path.read_bytes())
        fields = found["recipe"]
        if found["format"] != RUN_FORMAT:
            raise KeyError("format")
        channels = tuple(fields["discriminator_channels"])
        recipe = StyleRecipe(**{**fields, "discriminator_channels": channels})
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        return recipe, json.loads(lines[-1])["step"]
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}; expected a run of matroot train style") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CommandError(f"{folder} is no run of matroot train style with weights: {error!r}") from error
