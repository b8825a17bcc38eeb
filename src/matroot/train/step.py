"""One step of training: called operation by operation, or captured in a CUDA graph and replayed."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.distributed.tensor import DTensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from .._registry import choose_gradient, choose_method
from ..backends.triton.paper.methods import LARGEST
from ..gradients import Exact, Krylov, Smith
from ..methods import Pade
from ..nn import CovariancePool, DecorrelatedBatchNorm, SecondOrderHead
from .average import Average
from .graph import CapturedCall
from .objective import logits_and_loss
from .optimiser import parameters_of, set_rate
from .recipe import Recipe

SKIPPED_STEPS = 25
"""Steps in a row that float16 may skip while its scale of the loss shrinks."""


class Totals:
    """Sums over steps, kept on the device; only :meth:`read` waits for it."""

    def __init__(self, device: torch.device, patience: int) -> None:
        self._patience = patience
        self._sums = torch.zeros(4, dtype=torch.float64, device=device)
        self._streak = torch.zeros((), device=device)
        self.stopped = torch.zeros((), device=device)
        """1 from the step on that is the last of ``patience`` steps in a row that are not finite, else 0."""

    def add(self, logits: Tensor, targets: Tensor, loss: Tensor, gradient: Tensor) -> None:
        """Count a step; the examples of one that is not finite are left out.

        gradient: a number that is not finite if the gradient is not.
        """
        labels = targets.argmax(1) if targets.is_floating_point() else targets
        finite = torch.isfinite(loss) & torch.isfinite(gradient)
        self._streak.add_(1).mul_(~finite)
        self.stopped.copy_(torch.maximum(self.stopped, (self._streak >= self._patience).float()))
        correct = (logits.argmax(1) == labels).sum()
        size = torch.full_like(loss, len(labels))
        counted = torch.where(finite, torch.stack([loss * size, correct, size]), 0)
        self._sums.add_(torch.cat([counted, 1 - self.stopped[None]]))

    def start_epoch(self) -> None:
        """Start from zero."""
        self._sums.zero_()

    def read(self) -> Tensor:
        """(5,): sum of losses over examples, correct ones, examples, steps before it stopped, whether it has."""
        return torch.cat([self._sums, self.stopped.double()[None]])


class EagerStep:
    """``step(images, targets, lr)``: forward and backward pass, clipping, update, average and totals.

    Nothing waits for the device. A step whose loss or gradient is not finite changes no weights, and neither does any
    step after it: the weights stay those of which the batch can be looked at.

    model: on its device, in training mode; may be wrapped for several processes.
    scaler: of the loss, for float16, whose steps may be skipped ``SKIPPED_STEPS`` times in a row.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        recipe: Recipe,
        average: Average | None = None,
        scaler: GradScaler | None = None,
    ) -> None:
        self.model, self.optimizer, self.recipe = model, optimizer, recipe
        self.average, self.scaler = average, scaler
        self._parameters = parameters_of(optimizer)
        self.totals = Totals(self._parameters[0].device, patience=1 if scaler is None else SKIPPED_STEPS)
        if scaler is None:
            # Fused optimisers, as a scaler of losses needs them, leave out an update where this is 1.
            vars(optimizer)["found_inf"] = self.totals.stopped

    def __call__(self, images: Tensor, targets: Tensor, lr: float) -> None:
        set_rate(self.optimizer, lr)
        self._train(images, targets)

    def _train(self, images: Tensor, targets: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        if self.recipe.channels_last and images.ndim == 4:
            images = images.contiguous(memory_format=torch.channels_last)
        logits, loss = logits_and_loss(self.model, self.recipe, images, targets)
        if self.scaler is None:
            loss.backward()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
        self.totals.add(logits.detach(), targets, loss.detach(), self._clip())
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.average is not None:
            self.average.update()

    def _clip(self) -> Tensor:
        """Clip the gradient; a number that is not finite if the gradient is not."""
        if self.recipe.clip_norm is not None:
            size = clip_grad_norm_(self._parameters, self.recipe.clip_norm)
        else:
            # Cheaper than a norm: what is not finite in a backward pass arrives at its end, the first layer.
            size = next(p.grad for p in self.model.parameters() if p.grad is not None).sum()
        return size.full_tensor() if isinstance(size, DTensor) else size


class GraphStep(EagerStep):
    """An :class:`EagerStep` that is replayed from a CUDA graph: the same operations without their launches.

    A :class:`CapturedCall`: its first steps are ordinary ones, and so are batches of another shape than the first.
    Graph and ordinary steps draw the same random numbers, so it does not matter where a run was resumed. What the
    step does must not change afterwards: make a new one for another preset. CaptureError where the step cannot be
    captured.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, recipe: Recipe, average: Average | None = None) -> None:
        super().__init__(model, optimizer, recipe, average)
        self._captured = CapturedCall()

    def __call__(self, images: Tensor, targets: Tensor, lr: float) -> None:
        set_rate(self.optimizer, lr)
        self._captured(self._train, images, targets)


def why_not_captured(model: nn.Module, recipe: Recipe, device: torch.device, world: int) -> str | None:
    """Why a step cannot be captured in a CUDA graph; None if it can."""
    if device.type != "cuda":
        return f"there are no CUDA graphs on {device.type}"
    if world > 1:
        return "several processes exchange gradients"
    if recipe.precision == "float16":
        return "the scale of a float16 loss is decided on the host"
    return why_roots_not_captured(model)


def why_roots_not_captured(model: nn.Module) -> str | None:
    """Why the roots of a model on CUDA cannot be captured in a graph; None if they can."""
    for name, module in model.named_modules():
        if hasattr(module, "method") and hasattr(module, "gradient"):
            layer = f"{name} ({type(module).__name__})"
            if _decomposes(module.method, module.gradient):
                return f"{layer} decomposes matrices, which waits for the host"
            if _solves(module):
                return f"{layer} solves linear systems, for which libraries allocate memory of their own"
    return None


def _decomposes(method: Any, gradient: Any) -> bool:
    """Whether roots on CUDA by this method and gradient of a layer call ``torch.linalg.eigh``."""
    rule = None if gradient is None else choose_gradient(gradient)
    if method == "auto":
        return not (rule is None or isinstance(rule, Krylov | Smith))
    return choose_method(method).spectral or isinstance(rule, Exact)


def _solves(layer: Any) -> bool:
    """Whether a layer calls ``torch.linalg.solve`` on CUDA: rational approximants do above the size of the kernels."""
    if layer.method == "auto" or not isinstance(choose_method(layer.method), Pade):
        return False
    if isinstance(layer, DecorrelatedBatchNorm):
        return layer.num_features // layer.groups > LARGEST
    if isinstance(layer, CovariancePool):
        return (layer.reduce_to or layer.in_channels) > LARGEST
    # A head has its pool beside it; elsewhere the size is known only with the features.
    return not isinstance(layer, SecondOrderHead)
