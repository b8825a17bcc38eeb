"""How long ten whitening and colouring transforms take with every preset: as many as two decoders have."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

import matroot

from ..._timer import Work
from ...models._presets import root_options
from ...models.style_exchange import ALPHA, EPS, TRANSFORMS
from ...nn import WhitenColor, covariance
from ..compare.clock import milliseconds_in_turns
from ..compare.results import StepTime
from ..compare.timing import device_name
from ..graph import CapturedCall
from ..step import why_roots_not_captured

COUNT = 2 * TRANSFORMS
"""Transforms of both generators."""


@dataclass(frozen=True)
class Shape:
    """Of the features of a batch in the published run: images of 216 pixels."""

    batch: int = 4
    channels: int = 256
    content: int = 54
    """Positions of a side."""
    style: int = 13

    def __str__(self) -> str:
        content, style = f"{self.content}x{self.content}", f"{self.style}x{self.style}"
        return f"{self.batch} x {self.channels} x {self.channels}, content {content}, style {style}"


@dataclass(frozen=True)
class TransformTimes:
    """Milliseconds of ``COUNT`` forward and backward passes, by preset."""

    device: str
    shape: str
    transforms: dict[str, StepTime]
    """Whole transforms, with means, covariances and products."""
    roots: dict[str, StepTime]
    """Both roots of their matrices alone."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a preset has no time."""


def timed_presets() -> tuple[str, ...]:
    """matroot's own choice, then all of the paper's that have an inverse root."""
    return ("default", *(name for name in matroot.presets() if matroot.preset(name)["method"].has_inverse))


def time_transforms(
    presets: Sequence[str], device: torch.device, shape: Shape | None = None, time_budget: float = 1.0
) -> TransformTimes:
    """Time all presets in turns, transforms and their roots alone; on CUDA from a graph where it can be captured."""
    shape = shape or Shape()
    works: dict[str, Work] = {}
    modes: dict[str, str] = {}
    content, style = (_features(shape, side, device, seed) for seed, side in enumerate((shape.content, shape.style)))
    for preset in presets:
        layer = WhitenColor(ALPHA, eps=EPS, **root_options(preset)).to(device)
        captured = device.type == "cuda" and why_roots_not_captured(layer) is None
        modes[preset] = "graph" if captured else "eager"
        for name, work in (
            (f"transforms {preset}", _transforms(layer, content, style)),
            (f"roots {preset}", _roots(preset, content, style)),
        ):
            # The graph reads tensors of the work: both live as long as each other.
            works[name] = partial(CapturedCall(), work) if captured else work
    times, failed = milliseconds_in_turns(works, device, time_budget)
    failures = {name.partition(" ")[2]: why for name, why in failed.items()}

    def of(kind: str) -> dict[str, StepTime]:
        return {
            preset: StepTime(*times[f"{kind} {preset}"], modes[preset])
            for preset in presets
            if f"{kind} {preset}" in times
        }

    found = TransformTimes(device_name(device), str(shape), of("transforms"), of("roots"), failures)
    del works
    gc.collect()
    return found


def _features(shape: Shape, side: int, device: torch.device, seed: int) -> Tensor:
    """Correlated channels (batch, channels, side, side): deviations along orthogonal directions from 1 to 0.03."""
    generator = torch.Generator().manual_seed(seed)
    channels = shape.channels
    directions = torch.linalg.qr(torch.randn(channels, channels, generator=generator)).Q
    mix = directions * torch.logspace(0, -1.5, channels)
    x = torch.randn(shape.batch, channels, side * side, generator=generator)
    return (mix @ x).unflatten(-1, (side, side)).to(device).requires_grad_()


def _transforms(layer: nn.Module, content: Tensor, style: Tensor) -> Callable[[], None]:
    upstream = _upstream(content)

    def work() -> None:
        for _ in range(COUNT):
            torch.autograd.grad(layer(content, style), (content, style), upstream)

    return work


def _roots(preset: str, content: Tensor, style: Tensor) -> Callable[[], None]:
    options = root_options(preset)
    method, gradient = options.get("method", "auto"), options.get("gradient")
    A, B = (covariance(x.detach(), correction=1, eps=EPS).requires_grad_() for x in (content, style))
    upstream = _upstream(A), _upstream(B)

    def work() -> None:
        for _ in range(COUNT):
            whiten = matroot.invsqrtm(A, method, gradient=gradient)
            color = matroot.sqrtm(B, method, gradient=gradient)
            torch.autograd.grad((whiten, color), (A, B), upstream)

    return work


def _upstream(x: Tensor) -> Tensor:
    """A gradient with respect to x. Not a constant: centring takes away what is the same at all positions, and the
    roots would have nothing to propagate."""
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(2)).to(x.device)
