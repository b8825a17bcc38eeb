"""Every network at a size for tests."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from matroot import models


@dataclass(frozen=True)
class Reduced:
    """How one network is built small, and what it is given."""

    options: dict[str, Any]
    """Of ``models.create``."""
    example: tuple[int, ...]
    """Shape of one input."""
    steps: int | None = None
    """In which it learns 32 examples at a rate of 1e-2; None: tests of its own say so."""
    without: tuple[str, ...] = ()
    """Presets that the network cannot have, or for which it has layers of its own."""

    @property
    def presets(self) -> list[str]:
        return [name for name in models.preset_names() if name not in self.without]


# Power iteration has a pool of its own.
SO_VIT = Reduced(
    {"width": 64, "depth": 2, "stem_width": 8, "reduce_to": 8, "image_size": 16, "patch": 4, "drop_path": 0.0},
    (3, 16, 16),
    without=("pi",),
)
REDUCED: dict[str, Reduced] = {
    # Power iteration has no inverse root.
    "resnet18_dbn": Reduced({"width": 8}, (3, 8, 8), steps=30, without=("pi",)),
    "resnet50_dbn": Reduced({"width": 4}, (3, 8, 8), steps=70, without=("pi",)),
    # 16 positions of 24 channels: covariances are singular, as they are at full size.
    "resnet50_gcp": Reduced({"width": 4, "reduce_to": 24, "image_size": 16}, (3, 16, 16), steps=50),
    "resnet18_gcp": Reduced({"width": 4, "reduce_to": 12}, (3, 16, 16), steps=20),
    "tea50_tcp": Reduced({"width": 8, "depths": (1, 1, 1, 1), "reduce_to": (16, 8), "dropout": 0.0}, (3, 3, 32, 32)),
    "so_vit_7": SO_VIT,
    "so_vit_10": SO_VIT,
    "so_vit_14": SO_VIT,
    "so_vit_19": SO_VIT,
}
# The transformers differ in numbers alone.
VARIETY = [name for name in REDUCED if REDUCED[name] is not SO_VIT or name == "so_vit_7"]
PAIRS = [(name, preset) for name in VARIETY for preset in REDUCED[name].presets]


def build(name: str, preset: str = "default", num_classes: int = 4, **options: Any) -> nn.Module:
    """A small network; always the same weights."""
    torch.manual_seed(0)
    return models.create(name, num_classes, preset, **{**REDUCED[name].options, **options})


def inputs(name: str, count: int = 4) -> Tensor:
    """Random inputs (count, *example) of a network; always the same."""
    return torch.randn(count, *REDUCED[name].example, generator=torch.Generator().manual_seed(1))


def root_layers(model: nn.Module) -> list[nn.Module]:
    """The layers that take roots."""
    return [layer for layer in model.modules() if hasattr(layer, "method")]
