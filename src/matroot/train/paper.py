"""The tables of the paper's applications as data: Song, Sebe, Wang, Fast Differentiable Matrix Square Root.

All figures are percent, as printed there. Names of networks, data sets and presets are matroot's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Measure = Literal["error", "accuracy"]


@dataclass(frozen=True)
class Published:
    """One cell of a table."""

    title: str
    """``ResNet-18 on CIFAR-10``, in the paper's names."""
    measure: Measure
    value: float
    """Validation error or top-1 accuracy."""
    runs: int = 1
    std: float | None = None
    """Over the runs, where there are several."""
    top5: float | None = None

    def __str__(self) -> str:
        std = "" if self.std is None else f" \u00b1 {self.std:.2f}"
        top5 = "" if self.top5 is None else f", top-5 {self.top5:.2f} %"
        runs = f", {self.runs} runs" if self.runs > 1 else ""
        return f"{self.measure} {self.value:.2f}{std} %{top5} ({self.title}{runs})"


@dataclass(frozen=True)
class Column:
    """One network on one data set: a column of a table."""

    recipe: str
    model: str
    dataset: str
    title: str
    measure: Measure
    cells: Mapping[str, Published]
    """By preset."""


Figure = float | tuple[float, float]
"""A figure alone; of an error with its standard deviation, of a top-1 accuracy with the top-5."""


@dataclass(frozen=True)
class _Table:
    """A table of the paper: a row a preset, a column a network and a data set."""

    recipe: str
    measure: Measure
    columns: tuple[tuple[str, str, str, str], ...]
    """Network and data set by matroot's names, then by the paper's."""
    rows: Mapping[str, tuple[Figure, ...]]

    def __iter__(self) -> Iterator[Column]:
        for k, (model, dataset, network, data) in enumerate(self.columns):
            title = f"{network} on {data}"
            cells = {preset: self._cell(title, figures[k]) for preset, figures in self.rows.items()}
            yield Column(self.recipe, model, dataset, title, self.measure, cells)

    def _cell(self, title: str, figure: Figure) -> Published:
        first, second = figure if isinstance(figure, tuple) else (figure, None)
        if self.measure == "error":
            # Of five runs, the best epoch of each.
            return Published(title, "error", first, runs=5, std=second)
        return Published(title, "accuracy", first, top5=second)


_WHITENING = _Table(
    "dbn",
    "error",
    (
        ("resnet18_dbn", "cifar10", "ResNet-18", "CIFAR-10"),
        ("resnet18_dbn", "cifar100", "ResNet-18", "CIFAR-100"),
        ("resnet50_dbn", "cifar100", "ResNet-50", "CIFAR-100"),
    ),
    {
        "svd-clip": ((4.88, 0.25), (21.60, 0.39), (20.50, 0.33)),
        "svd-pi": ((4.59, 0.09), (21.39, 0.23), (19.94, 0.44)),
        "svd-taylor": ((4.50, 0.08), (21.14, 0.20), (19.81, 0.24)),
        "svd-pade": ((4.65, 0.11), (21.41, 0.15), (20.25, 0.23)),
        "ns": ((4.57, 0.15), (21.24, 0.20), (19.39, 0.30)),
        "mpa-lya": ((4.39, 0.09), (21.11, 0.12), (19.55, 0.20)),
        "mtp-lya": ((4.49, 0.13), (21.42, 0.21), (20.55, 0.37)),
        "svd-lya": ((4.45, 0.16), (21.24, 0.24), (19.41, 0.11)),
        "ns-lya": ((4.51, 0.14), (21.16, 0.17), (19.65, 0.35)),
    },
)
_COVARIANCE_POOLING = _Table(
    "gcp",
    "accuracy",
    (("resnet50_gcp", "imagenet", "ResNet-50", "ImageNet"),),
    {
        "svd-taylor": ((77.09, 93.33),),
        "svd-pade": ((77.33, 93.49),),
        "ns": ((77.19, 93.40),),
        "mpa-lya": ((77.13, 93.45),),
    },
)
_FINE_GRAINED = _Table(
    "finegrained",
    "accuracy",
    (
        ("resnet50_gcp", "cub200", "ResNet-50", "Birds (CUB-200)"),
        ("resnet50_gcp", "aircraft", "ResNet-50", "Aircraft"),
        ("resnet50_gcp", "cars", "ResNet-50", "Cars"),
    ),
    {
        "svd-taylor": (86.9, 89.9, 92.3),
        "svd-pade": (87.2, 90.5, 92.8),
        "ns": (87.3, 89.5, 91.7),
        "mpa-lya": (87.8, 91.0, 92.5),
    },
)
_VIDEO = _Table(
    "video",
    "accuracy",
    (
        ("tea50_tcp", "hmdb51", "TEA ResNet-50", "HMDB51"),
        ("tea50_tcp", "ucf101", "TEA ResNet-50", "UCF101"),
    ),
    {
        "svd-taylor": ((73.79, 93.84), (95.00, 99.60)),
        "svd-pade": ((73.89, 93.79), (94.13, 99.47)),
        "ns": ((72.75, 93.86), (94.16, 99.50)),
        "mpa-lya": ((74.05, 93.99), (94.24, 99.58)),
    },
)
# The accuracy of So-ViT-14 is saturated. It is reached after 303, 278, 271, 265, 280, 254 and 279 epochs.
_TRANSFORMERS = _Table(
    "sovit",
    "accuracy",
    (
        ("so_vit_7", "imagenet", "So-ViT-7", "ImageNet"),
        ("so_vit_10", "imagenet", "So-ViT-10", "ImageNet"),
        ("so_vit_14", "imagenet", "So-ViT-14", "ImageNet"),
    ),
    {
        "pi": ((75.93, 93.04), (77.96, 94.18), (82.16, 96.02)),
        "svd-pi": ((76.55, 93.42), (78.53, 94.40), (82.16, 96.01)),
        "svd-taylor": ((76.66, 93.52), (78.64, 94.49), (82.15, 96.02)),
        "svd-pade": ((76.71, 93.49), (78.77, 94.51), (82.17, 96.02)),
        "ns": ((76.50, 93.44), (78.50, 94.44), (82.16, 96.01)),
        "mpa-lya": ((76.84, 93.46), (78.83, 94.58), (82.17, 96.03)),
        "mtp-lya": ((76.46, 93.26), (78.44, 94.33), (82.16, 96.02)),
    },
)
COLUMNS: tuple[Column, ...] = (*_WHITENING, *_COVARIANCE_POOLING, *_FINE_GRAINED, *_VIDEO, *_TRANSFORMERS)
"""Of each recipe, the one to set other networks and data sets beside stands first."""


def published(recipe_name: str, model: str, dataset: str, preset: str) -> Published | None:
    """The paper's figure for a network, a data set and a preset; None where it has none."""
    for column in COLUMNS:
        if (column.recipe, column.model, column.dataset) == (recipe_name, model, dataset):
            return column.cells.get(preset)
    return None


def nearest_column(recipe_name: str, model: str, dataset: str) -> Column:
    """The column of a recipe that shares most with a run: network and data set, the data set, the network, or neither.

    KeyError for a recipe without a table.
    """
    own = _columns(recipe_name)
    return max(own, key=lambda column: 2 * (column.dataset == dataset) + (column.model == model))


def presets_of(recipe_name: str) -> tuple[str, ...]:
    """The presets of a recipe's tables, in their order; KeyError for a recipe without a table."""
    return tuple(dict.fromkeys(preset for column in _columns(recipe_name) for preset in column.cells))


def _columns(recipe_name: str) -> list[Column]:
    own = [column for column in COLUMNS if column.recipe == recipe_name]
    if not own:
        raise KeyError(recipe_name)
    return own
