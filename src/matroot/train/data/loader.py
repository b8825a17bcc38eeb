"""Batches of files that are read and augmented by worker processes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from .augment import Normalise, erase_, memory_format
from .errors import DataError
from .order import Order
from .seeding import generator_for
from .segments import middle_frames, random_frames
from .split import Files, InMemory
from .views import ONE_VIEW, Views
from .windows import erased_rectangles

Transform = Callable[[list[Image.Image], torch.Generator], Tensor]
Key = tuple[int, int]
"""Epoch and example."""


class Examples(Dataset[Any]):
    """Examples as uint8 tensors; what is random about one depends on seed, epoch and example alone."""

    def __init__(
        self,
        split: InMemory | Files,
        transform: Transform,
        seed: int,
        frames: int | None,
        training: bool,
        size: int,
        erasing: float = 0.0,
        views: Views = ONE_VIEW,
    ) -> None:
        self._split, self._transform, self._seed, self._frames = split, transform, seed, frames
        self._training, self._size, self._erasing, self._views = training, size, erasing, views

    def __len__(self) -> int:
        return len(self._split)

    def __getitem__(self, key: Key) -> tuple[Tensor, Tensor, Tensor] | DataError:
        """Image (C, H, W) or clip (T, C, H, W), label (), and the rectangle to erase (4,).

        With several views there is a dimension of them before the others. A DataError is returned: raised in a worker
        it would arrive with the traceback of that process.
        """
        epoch, example = key
        generator = generator_for(self._seed, epoch, example)
        try:
            frames = self._split.read(example, partial(self._choose, generator=generator))
        except DataError as error:
            return error
        images = self._transform(frames, generator)
        rectangle = erased_rectangles(1, self._size, self._erasing, generator)[0]
        if self._views.count > 1:
            images = images if self._frames is None else images.unflatten(0, (-1, self._frames))
        elif self._frames is None:
            images = images[0]
        return images, self._split.labels[example], rectangle

    def _choose(self, available: int, generator: torch.Generator) -> list[int]:
        assert self._frames is not None
        if self._training:
            return random_frames(available, self._frames, generator)
        clips = self._views.clips
        return [frame for clip in range(clips) for frame in middle_frames(available, self._frames, clip, clips)]


class _EpochOrder(Sampler[list[Key]]):
    """The keys of the batches of ``number``, which the workers get with each batch."""

    def __init__(self, order: Order, seed: int) -> None:
        self.number = 0
        self._order, self._seed = order, seed

    def __iter__(self) -> Iterator[list[Key]]:
        examples = self._order.permutation(generator_for(self._seed, self.number)).tolist()
        for part in self._order.parts:
            yield [(self.number, example) for example in examples[part]]

    def __len__(self) -> int:
        return len(self._order.parts)


class Loader:
    """Batches (see ``Batches``) of a DataLoader whose workers stay for all epochs.

    uint8 travels to the device, where it is normalised. DataError names an example that cannot be read.
    """

    def __init__(
        self,
        examples: Examples,
        order: Order,
        normalise: Normalise,
        device: torch.device,
        seed: int,
        workers: int,
        channels_last: bool = False,
    ) -> None:
        self._order = _EpochOrder(order, seed)
        self._normalise, self._device, self._channels_last = normalise, device, channels_last
        self._examples, self._workers = examples, workers
        self._loader = self._open_loader()

    def __len__(self) -> int:
        return len(self._order)

    def _open_loader(self) -> DataLoader[Any]:
        return DataLoader(
            self._examples,
            batch_sampler=self._order,
            num_workers=self._workers,
            collate_fn=_collate,
            pin_memory=self._device.type == "cuda",
            persistent_workers=self._workers > 0,
            # Of its own: a DataLoader otherwise draws from the global one.
            generator=torch.Generator(),
        )

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (B, C, H, W) or clips (B, T, C, H, W) and labels (B,)."""
        self._order.number = number
        for batch in self._loader:
            if isinstance(batch, DataError):
                failure = str(batch)
                break
            images, labels, rectangles = (part.to(self._device, non_blocking=True) for part in batch)
            images = self._normalise(memory_format(images, self._channels_last))
            yield erase_(images, rectangles), labels
        else:
            return
        # Ends the workers now: an exception keeps this frame alive, and the garbage collector may close their queues
        # before it tells them to end, and then waits seconds for each.
        self._loader = self._open_loader()
        raise DataError(failure)


def _collate(examples: list[tuple[Tensor, Tensor, Tensor] | DataError]) -> tuple[Tensor, ...] | DataError:
    for example in examples:
        if isinstance(example, DataError):
            return example
    return tuple(torch.stack(parts) for parts in zip(*examples, strict=True))
