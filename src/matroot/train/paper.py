"""The tables of the paper's applications as data: Song, Sebe, Wang, Fast Differentiable Matrix Square Root.

All figures are percent, as printed there. Names of networks, data sets and presets are matroot's.
"""

from collections.abc import Mapping
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


def _whitening(model: str, network: str, dataset: str, data: str, **cells: tuple[float, float]) -> Column:
    """Error of five runs, the best epoch of each: mean and standard deviation."""
    title = f"{network} on {data}"
    found = {_preset(name): Published(title, "error", mean, 5, std) for name, (mean, std) in cells.items()}
    return Column("dbn", model, dataset, title, "error", found)


def _accuracy(
    recipe: str, model: str, network: str, dataset: str, data: str, **cells: float | tuple[float, float]
) -> Column:
    """Accuracy of a single run: top-1, or top-1 and top-5."""
    title, found = f"{network} on {data}", {}
    for name, cell in cells.items():
        top1, top5 = cell if isinstance(cell, tuple) else (cell, None)
        found[_preset(name)] = Published(title, "accuracy", top1, top5=top5)
    return Column(recipe, model, dataset, title, "accuracy", found)


def _preset(name: str) -> str:
    return name.replace("_", "-")


COLUMNS: tuple[Column, ...] = (
    _whitening(
        "resnet18_dbn",
        "ResNet-18",
        "cifar10",
        "CIFAR-10",
        svd_clip=(4.88, 0.25),
        svd_pi=(4.59, 0.09),
        svd_taylor=(4.50, 0.08),
        svd_pade=(4.65, 0.11),
        ns=(4.57, 0.15),
        mpa_lya=(4.39, 0.09),
        mtp_lya=(4.49, 0.13),
        svd_lya=(4.45, 0.16),
        ns_lya=(4.51, 0.14),
    ),
    _whitening(
        "resnet18_dbn",
        "ResNet-18",
        "cifar100",
        "CIFAR-100",
        svd_clip=(21.60, 0.39),
        svd_pi=(21.39, 0.23),
        svd_taylor=(21.14, 0.20),
        svd_pade=(21.41, 0.15),
        ns=(21.24, 0.20),
        mpa_lya=(21.11, 0.12),
        mtp_lya=(21.42, 0.21),
        svd_lya=(21.24, 0.24),
        ns_lya=(21.16, 0.17),
    ),
    _whitening(
        "resnet50_dbn",
        "ResNet-50",
        "cifar100",
        "CIFAR-100",
        svd_clip=(20.50, 0.33),
        svd_pi=(19.94, 0.44),
        svd_taylor=(19.81, 0.24),
        svd_pade=(20.25, 0.23),
        ns=(19.39, 0.30),
        mpa_lya=(19.55, 0.20),
        mtp_lya=(20.55, 0.37),
        svd_lya=(19.41, 0.11),
        ns_lya=(19.65, 0.35),
    ),
    _accuracy(
        "gcp",
        "resnet50_gcp",
        "ResNet-50",
        "imagenet",
        "ImageNet",
        svd_taylor=(77.09, 93.33),
        svd_pade=(77.33, 93.49),
        ns=(77.19, 93.40),
        mpa_lya=(77.13, 93.45),
    ),
    _accuracy(
        "finegrained",
        "resnet50_gcp",
        "ResNet-50",
        "cub200",
        "Birds (CUB-200)",
        svd_taylor=86.9,
        svd_pade=87.2,
        ns=87.3,
        mpa_lya=87.8,
    ),
    _accuracy(
        "finegrained",
        "resnet50_gcp",
        "ResNet-50",
        "aircraft",
        "Aircraft",
        svd_taylor=89.9,
        svd_pade=90.5,
        ns=89.5,
        mpa_lya=91.0,
    ),
    _accuracy(
        "finegrained",
        "resnet50_gcp",
        "ResNet-50",
        "cars",
        "Cars",
        svd_taylor=92.3,
        svd_pade=92.8,
        ns=91.7,
        mpa_lya=92.5,
    ),
    _accuracy(
        "video",
        "tea50_tcp",
        "TEA ResNet-50",
        "hmdb51",
        "HMDB51",
        svd_taylor=(73.79, 93.84),
        svd_pade=(73.89, 93.79),
        ns=(72.75, 93.86),
        mpa_lya=(74.05, 93.99),
    ),
    _accuracy(
        "video",
        "tea50_tcp",
        "TEA ResNet-50",
        "ucf101",
        "UCF101",
        svd_taylor=(95.00, 99.60),
        svd_pade=(94.13, 99.47),
        ns=(94.16, 99.50),
        mpa_lya=(94.24, 99.58),
    ),
    _accuracy(
        "sovit",
        "so_vit_7",
        "So-ViT-7",
        "imagenet",
        "ImageNet",
        pi=(75.93, 93.04),
        svd_pi=(76.55, 93.42),
        svd_taylor=(76.66, 93.52),
        svd_pade=(76.71, 93.49),
        ns=(76.50, 93.44),
        mpa_lya=(76.84, 93.46),
        mtp_lya=(76.46, 93.26),
    ),
    _accuracy(
        "sovit",
        "so_vit_10",
        "So-ViT-10",
        "imagenet",
        "ImageNet",
        pi=(77.96, 94.18),
        svd_pi=(78.53, 94.40),
        svd_taylor=(78.64, 94.49),
        svd_pade=(78.77, 94.51),
        ns=(78.50, 94.44),
        mpa_lya=(78.83, 94.58),
        mtp_lya=(78.44, 94.33),
    ),
    # Where the accuracy is saturated: reached after 303 epochs by pi, 278 svd-pi, 271 svd-taylor, 265 svd-pade, 280 ns,
    # 254 mpa-lya and 279 mtp-lya.
    _accuracy(
        "sovit",
        "so_vit_14",
        "So-ViT-14",
        "imagenet",
        "ImageNet",
        pi=(82.16, 96.02),
        svd_pi=(82.16, 96.01),
        svd_taylor=(82.15, 96.02),
        svd_pade=(82.17, 96.02),
        ns=(82.16, 96.01),
        mpa_lya=(82.17, 96.03),
        mtp_lya=(82.16, 96.02),
    ),
)
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
