"""What a distillation is: all that changes its weights, and nothing else. The command's options are its fields."""

from dataclasses import dataclass, field
from typing import Any, Literal

from ..._terminal import CommandError
from .teacher import SMALLEST_IMAGE

Precision = Literal["float32", "bfloat16"]
_COUNTS = ("steps", "pairs", "warmup")
_SHARES = ("exchanged", "recolored", "ema", "imitated")
_WEIGHTS = ("lr", "final_lr", "clip_norm", "content", "style", "pixels", "features", "imitation", "variation")


def option(default: Any, text: str) -> Any:
    """A field of a dataclass that is an option of the command, with its text."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One distillation. CommandError if a number is out of range."""

    steps: int = option(8000, "steps in all; the learning rate falls to its end over them")
    pairs: int = option(8, "pairs of content and style in a step")
    crop: int = option(192, "pixels of a side of the pictures")
    enlarged: float = option(1.25, "most that crops are enlarged, where a picture has the pixels")
    exchanged: float = option(0.125, "share of contents that are paintings, and of styles that are photographs")
    recolored: float = option(0.125, "share of styles with their colour channels exchanged")
    seed: int = option(0, "of initial weights and crops")

    channels: tuple[int, ...] = option((32, 64, 128), "widths of the network at strides 1, 2 and 4")
    precision: Precision = option("float32", "of autocast; statistics, roots and losses are computed in float32")  # noqa: RUF009

    lr: float = option(1e-3, "learning rate of Adam after the warm-up; it then falls along a cosine")
    final_lr: float = option(1e-5, "where it ends")
    warmup: int = option(100, "steps in which it rises linearly")
    clip_norm: float = option(1.0, "largest norm of the gradient of all parameters together")
    ema: float = option(0.999, "decay of the average of weights, which is what is exported")

    content: float = option(2.0, "weight of the distance of the picture from its content")
    style: float = option(10.0, "weight of the distance of the picture's statistics from its style's")
    pixels: float = option(20.0, "weight of the mean absolute difference of a reproduced picture")
    features: float = option(2.0, "weight of the difference of the teacher's features of a reproduced picture")
    imitation: float = option(5.0, "weight, at first, of the mean absolute difference from the teacher's own picture")
    imitated: float = option(0.2, "share of the steps over which that weight falls to 0")
    variation: float = option(0.5, "weight of the total variation of the picture")

    def __post_init__(self) -> None:
        for name in _COUNTS:
            self._require(name, getattr(self, name) >= 1, "at least 1")
        for name in _SHARES:
            self._require(name, 0 <= getattr(self, name) <= 1, "in [0, 1]")
        for name in _WEIGHTS:
            self._require(name, 0 <= getattr(self, name) < float("inf"), "a number that is not negative")
        self._require("enlarged", 1 <= self.enlarged < float("inf"), "a number from 1 on")
        self._require("seed", self.seed >= 0, "at least 0")
        self._require("crop", self.crop >= SMALLEST_IMAGE, f"at least {SMALLEST_IMAGE} pixels")
        self._require("channels", len(self.channels) == 3 and min(self.channels) > 0, "three positive numbers")
        self._require("precision", self.precision in ("float32", "bfloat16"), "float32 or bfloat16")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise CommandError(f"--{name.replace('_', '-')} must be {expected}, got {getattr(self, name)}")
