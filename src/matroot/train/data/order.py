"""Which examples a process has at each step of an epoch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import DataError


@dataclass(frozen=True)
class Order:
    """Positions of one process in the order of all examples, step by step."""

    examples: int
    parts: tuple[slice, ...]
    shuffled: bool

    def permutation(self, generator: torch.Generator) -> Tensor:
        """Examples in the order of an epoch, int64 (N,); the same in every process."""
        if self.shuffled:
            return torch.randperm(self.examples, generator=generator)
        return torch.arange(self.examples)


def training_order(examples: int, batch_size: int, rank: int = 0, world: int = 1, paired: bool = False) -> Order:
    """Shuffled batches of which each process has an equal part; examples that fill no batch are left out.

    A set smaller than one batch is one batch, less what cannot be divided equally. DataError if ``batch_size`` cannot
    be, or if there are fewer examples than processes.

    paired: every part is even, for images that are mixed in pairs.
    """
    least = 2 if paired else 1
    if batch_size % (least * world):
        pairs = ", in pairs for mixup and cutmix" if paired else ""
        raise DataError(f"a batch of {batch_size} cannot be divided equally among {world} processes{pairs}")
    own = min(batch_size, examples) // (least * world) * least
    _require_examples(examples, world, "training", least)
    steps = max(examples // batch_size, 1)
    starts = (step * own * world + rank * own for step in range(steps))
    return Order(examples, tuple(slice(start, start + own) for start in starts), shuffled=True)


def evaluation_order(examples: int, batch_size: int, rank: int = 0, world: int = 1) -> Order:
    """Every example once, in order, in the fewest batches; batches and parts of them differ by one example at most.

    All processes have the same number of steps. DataError if there are fewer examples than processes.
    """
    _require_examples(examples, world, "test")
    steps = min(-(-examples // batch_size), examples // world)
    bounds = [examples * part // (steps * world) for part in range(steps * world + 1)]
    own = range(rank, steps * world, world)
    return Order(examples, tuple(slice(bounds[part], bounds[part + 1]) for part in own), shuffled=False)


def _require_examples(examples: int, world: int, split: str, least: int = 1) -> None:
    if examples < least * world:
        raise DataError(
            f"the {split} split has {examples} examples, expected {least} at least for each of {world} processes"
        )
