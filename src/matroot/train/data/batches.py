"""What the training loop asks of data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


class Batches(Protocol):
    """One split of a data set, in the batches of this process.

    The batches of an epoch depend on seed and epoch alone: not on what was read before, not on the number of workers,
    and the batches of all processes together are those of a single one. Process r of w has the r-th of w equal
    parts of every batch for training. Every process has the same number of steps.
    """

    def __len__(self) -> int:
        """Steps of an epoch."""
        ...

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (B, C, H, W) or clips (B, T, C, H, W), float32 and normalised, and labels (B,), on the device."""
        ...


@dataclass(frozen=True)
class Data:
    """A data set, opened for a recipe."""

    train: Batches
    test: Batches
    """Without augmentation, every example once, in order; batches and the parts of processes differ by one at most."""
    num_classes: int
    channels: int
    stand_in: str | None
    """What a small set stands in for, as a sentence to print beside every figure; None for the published set."""
    source: str = ""
    """Where it was found, to be shown."""
    clips: bool = False
    """Whether examples are clips; otherwise they are images."""
