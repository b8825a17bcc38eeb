"""Which layer made a loss or a gradient that is not finite."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .._terminal import CommandError
from .objective import logits_and_loss
from .recipe import Recipe


class NonFiniteError(CommandError):
    """A loss or a gradient of NaN or infinity; the message names the layer."""


def diagnose(model: nn.Module, recipe: Recipe, images: Tensor, targets: Tensor) -> str:
    """A sentence that names the first layer whose output, or else whose gradient, is not finite for a batch.

    The batch goes forward and backward through the network as it is, without ``torch.compile``; gradients are lost.
    """
    model.zero_grad(set_to_none=True)
    if not torch.isfinite(images).all():
        return f"the images of the batch, {tuple(images.shape)}, are not finite themselves"
    with torch.compiler.set_stance("force_eager"), _watched(model) as watch:
        loss = logits_and_loss(model, recipe, images, targets)[1]
        if watch.forward is not None:
            return watch.forward
        if not torch.isfinite(loss):
            return "all layers are finite, the loss is not: look at the logits and the labels"
        loss.backward()
    if watch.backward is not None:
        return watch.backward
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
            return f"the gradient with respect to {name} is not finite"
    return "the same batch is finite when it is repeated: random numbers of the network, such as dropout, decide"


class _Watch:
    """The first layer that is not finite in each direction."""

    def __init__(self) -> None:
        self.forward: str | None = None
        self.backward: str | None = None
        self._passed = "the loss"

    def output(self, layer: str, module: nn.Module, inputs: tuple, output: object) -> None:
        if self.forward is None and isinstance(output, Tensor):
            if not torch.isfinite(output).all():
                self.forward = f"the output of {layer} is not finite{_cause(module, inputs)}"
            elif output.requires_grad:
                output.register_hook(lambda gradient: self.gradient(layer, gradient))

    def gradient(self, layer: str, gradient: Tensor) -> None:
        """Called in the order of the backward pass, with the gradient with respect to a layer's output."""
        if self.backward is None:
            if torch.isfinite(gradient).all():
                self._passed = layer
            else:
                self.backward = f"the backward pass of {self._passed} makes a gradient that is not finite"


@contextmanager
def _watched(model: nn.Module) -> Iterator[_Watch]:
    """Watch layers without layers in them, and those that take roots."""
    watch = _Watch()
    handles = []
    for name, module in model.named_modules():
        if not any(True for _ in module.children()) or hasattr(module, "method"):
            layer = f"{name or 'the network'} ({type(module).__name__})"

            def hook(module: nn.Module, inputs: tuple, output: object, layer: str = layer) -> None:
                watch.output(layer, module, inputs, output)

            handles.append(module.register_forward_hook(hook))
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()


def _cause(module: nn.Module, inputs: tuple) -> str:
    """What is known of a layer: parameters that are not finite, the range of its input."""
    for name, parameter in module.named_parameters():
        if not torch.isfinite(parameter).all():
            return f": its {name} is not"
    tensors = [value for value in inputs if isinstance(value, Tensor) and value.numel()]
    if not tensors:
        return ""
    low, high = tensors[0].aminmax()
    return f"; its input, {tuple(tensors[0].shape)}, is between {low.item():.4g} and {high.item():.4g}"
