"""From a recipe to its data."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ..._names import nearest
from ..recipe import Recipe
from .augment import Normalise
from .batches import Batches, Data
from .catalogue import ENTRIES
from .errors import DataError
from .loader import Examples, Loader
from .on_device import Augmentation, OnDevice, shrink
from .order import Order, evaluation_order, training_order
from .places import find, places
from .readers.digits import read_digits
from .segments import middle_frames
from .split import DataSet, Files, InMemory
from .transforms import Evaluation, Training, rand_augment
from .views import ONE_VIEW, Views

DIGITS = "digits"
EVALUATION_BATCHES = 4
"""Images in memory are evaluated in batches this many times larger: no activations are kept for a backward pass."""


def list_datasets() -> list[str]:
    """Names for ``Recipe.dataset``; the first needs no files."""
    return [DIGITS, *ENTRIES]


def open_data(
    recipe: Recipe,
    root: Path | None,
    device: torch.device,
    rank: int = 0,
    world: int = 1,
    workers: int = 2,
    views: Views = ONE_VIEW,
) -> Data:
    """The data set of a recipe, in the batches of process ``rank`` of ``world``.

    It is looked for in ``root`` alone, or, where that is None, in MATROOT_DATA, ``data`` and torch's cache. Small sets
    are held on the device, others are read by ``workers`` processes. With several views, batches of the test split have
    a dimension of them after the first; sets in memory have one. DataError if the set is unknown, not found, incomplete
    or corrupt.
    """
    dataset, source = _read(recipe, root)
    opening = _Opening(recipe, dataset, device, rank, world, workers, views)
    return Data(
        train=opening.train(),
        test=opening.test(),
        num_classes=dataset.num_classes,
        channels=dataset.channels,
        stand_in=dataset.stand_in,
        source=source,
        clips=dataset.clips,
    )


def _read(recipe: Recipe, root: Path | None) -> tuple[DataSet, str]:
    name = recipe.dataset
    if name == DIGITS:
        return read_digits(recipe.image_size), "scikit-learn"
    if name not in ENTRIES:
        meant = nearest(name, list_datasets())
        hint = "." if meant is None else f", did you mean {meant}?"
        raise DataError(f"unknown data set {name}{hint} There are {', '.join(list_datasets())}.")
    entry = ENTRIES[name]
    layout, folder = find(name, entry.layouts, places(root), f"{entry.origin}\nThe data set digits needs no files.")
    return layout.read(folder), str(folder)


@dataclass(frozen=True)
class _Opening:
    """Both splits of a data set need all of this."""

    recipe: Recipe
    dataset: DataSet
    device: torch.device
    rank: int
    world: int
    workers: int
    views: Views

    def train(self) -> Batches:
        recipe, dataset = self.recipe, self.dataset
        split = self._fitted(dataset.train)
        mixes = bool(recipe.mixup or recipe.cutmix)
        order = training_order(len(split), recipe.batch_size, self.rank, self.world, paired=mixes)
        if isinstance(split, InMemory) and recipe.rand_augment is None:
            augmentation = Augmentation(recipe.augment, recipe.image_size, recipe.erasing)
            return self._on_device(split, order, augmentation)
        changes = None
        if recipe.rand_augment is not None:
            if dataset.channels != 3:
                raise DataError(f"rand_augment needs colour images, {recipe.dataset} has none")
            changes = rand_augment(recipe.rand_augment, recipe.image_size, dataset.mean)
        transform = Training(recipe.augment, recipe.image_size, dataset.fine_grained, changes)
        return self._loader(split, order, transform, training=True)

    def test(self) -> Batches:
        recipe, dataset = self.recipe, self.dataset
        split = self._fitted(dataset.test)
        if isinstance(split, InMemory):
            if self.views.count > 1:
                raise DataError(f"{recipe.dataset} is held in memory, cropped: there is one view of an example")
            batch_size = EVALUATION_BATCHES * recipe.batch_size
            order = evaluation_order(len(split), batch_size, self.rank, self.world)
            return self._on_device(split, order, Augmentation("none", recipe.image_size))
        if self.views.clips > 1 and not dataset.clips:
            raise DataError(f"{recipe.dataset} has images, of which there is one clip; crops can be 3")
        batch_size = max(1, recipe.batch_size // self.views.count)
        order = evaluation_order(len(split), batch_size, self.rank, self.world)
        before = dataset.fine_grained if recipe.augment == "finegrained" else None
        return self._loader(split, order, Evaluation(recipe.image_size, before, self.views.crops), training=False)

    def _fitted(self, split: InMemory | Files) -> InMemory | Files:
        """Pixels in memory, no more than the network needs of them."""
        if isinstance(split, Files):
            return split
        if self.dataset.clips:
            split = _with_frames(split, self.recipe)
        return shrink(split, self.recipe.image_size)

    def _normalise(self) -> Normalise:
        return Normalise(self.dataset.mean, self.dataset.std, self.device)

    def _on_device(self, split: InMemory, order: Order, augmentation: Augmentation) -> OnDevice:
        return OnDevice(
            split, order, augmentation, self._normalise(), self.device, self.recipe.seed, self.recipe.channels_last
        )

    def _loader(
        self, split: InMemory | Files, order: Order, transform: Training | Evaluation, training: bool
    ) -> Loader:
        recipe = self.recipe
        examples = Examples(
            split,
            transform,
            recipe.seed,
            recipe.frames if self.dataset.clips else None,
            training,
            recipe.image_size,
            recipe.erasing if training else 0.0,
            ONE_VIEW if training else self.views,
        )
        return Loader(examples, order, self._normalise(), self.device, recipe.seed, self.workers, recipe.channels_last)


def _with_frames(split: InMemory, recipe: Recipe) -> InMemory:
    """Clips of as many frames as the recipe wants; DataError if there are fewer."""
    available = split.pixels.shape[1]
    if recipe.frames > available:
        raise DataError(f"clips of {recipe.dataset} have {available} frames, not {recipe.frames}")
    return InMemory(split.pixels[:, middle_frames(available, recipe.frames)], split.labels)
