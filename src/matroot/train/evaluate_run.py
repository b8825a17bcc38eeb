"""Evaluation of a run that is there, also with several views of an example."""

from pathlib import Path

from .. import models
from .._terminal import CommandError
from . import data as datasets
from . import distributed
from .config import ConfigError, load_config
from .data.views import ONE_VIEW, Views
from .evaluation import Scores, evaluate
from .network import to_channels_last
from .recipes import RECIPES
from .seeding import convolutions
from .style.recipe import StyleRecipe


def evaluate_run(
    folder: Path, views: Views = ONE_VIEW, *, data: Path | None = None, device: str | None = None, workers: int = 2
) -> Scores:
    """Scores of the best weights of a run folder on the test split of its recipe.

    data, device, workers: as in ``matroot.train.run.train``. CommandError for a folder without a run, for weights and
    data that cannot be read, and where several views are asked of a data set that is held in memory.
    """
    description, weights = folder / "run.json", folder / "best.safetensors"
    if not description.exists():
        raise CommandError(f"{folder} is no folder of a run: there is no run.json")
    if _is_style(description):
        raise CommandError(f"{folder} is a run of matroot train style: matroot compare style --runs {folder} scores it")
    # Every field comes from the file; the recipe it is given is only of the right kind.
    recipe = load_config(description, RECIPES["dbn"]["digits"])
    ranks = distributed.start(device)
    try:
        opened = datasets.open_data(recipe, data, ranks.device, ranks.rank, ranks.world, workers, views)
        network = models.load(weights).to(ranks.device)
        if recipe.channels_last:
            to_channels_last(network)
        with convolutions(recipe.deterministic):
            return evaluate(network, opened.test, recipe, ranks, views.count)
    finally:
        distributed.stop(ranks)


def _is_style(description: Path) -> bool:
    """Whether a run is one of style exchange, whose recipe has other fields."""
    try:
        load_config(description, StyleRecipe())
    except ConfigError:
        return False
    return True
