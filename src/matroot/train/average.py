"""The moving average of a network's weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


class Average:
    """Exponential moving average of all parameters and buffers; integers are those of the last step.

    It keeps tensors, not a copy of the network, as one that is sharded cannot be copied, and evaluates by putting them
    into the network itself. It starts from the network as it is.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        # Of sharded parameters the part of this process: torch does not mix those with ordinary buffers in one call.
        tensors = [_local(tensor.detach()) for tensor in (*network.parameters(), *network.buffers())]
        self._floats = [tensor for tensor in tensors if tensor.is_floating_point()]
        self._integers = [tensor for tensor in tensors if not tensor.is_floating_point()]
        self._mean_floats = [tensor.clone() for tensor in self._floats]
        self._mean_integers = [tensor.clone() for tensor in self._integers]

    @torch.no_grad()
    def update(self) -> None:
        """mean = decay * mean + (1 - decay) * network; a captured step may contain it."""
        torch._foreach_lerp_(self._mean_floats, self._floats, 1 - self.decay)
        _copy(self._integers, self._mean_integers)

    def restart(self) -> None:
        """The average is the network as it is now."""
        _copy([*self._floats, *self._integers], [*self._mean_floats, *self._mean_integers])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The network is its average, and has its own weights again afterwards, bit for bit."""
        network = [*self._floats, *self._integers]
        own = [tensor.clone() for tensor in network]
        _copy([*self._mean_floats, *self._mean_integers], network)
        try:
            yield
        finally:
            _copy(own, network)


@torch.no_grad()
def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
