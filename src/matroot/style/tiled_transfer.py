"""The network by tiles: what it does with a whole picture, in little memory."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ..methods import Method
from .network import TRANSFORMS, StyleNetwork, counts_at, stride_of
from .statistics import Coloring, StyleStatistics
from .tiles import MergedMoments, Tile, tiles
from .transforms import Transform, transform_of

# Pixels around a pixel that can change it, rounded up to multiples of the deepest stride.
ENCODER_CONTEXT = 12
"""From the image to the features at stride 4."""
PAINTER_CONTEXT = 16
"""From there and from the image to the picture."""
AUTOENCODER_CONTEXT = 28
"""From the image to the picture."""

_DEEPEST = stride_of(0)
"""Stride of the deepest features."""

Progress = Callable[[float], None]
"""Is told the fraction that is done."""


@torch.inference_mode()
def statistics_by_tiles(
    network: StyleNetwork, images: Tensor, *, tile: int, method: str | Method = "auto"
) -> StyleStatistics:
    """:meth:`StyleNetwork.statistics` of images (B, 3, H, W), to rounding. tile: its side in pixels."""
    merged = [MergedMoments() for _ in range(TRANSFORMS)]
    for _, outer, inner in _walk(images, tile, AUTOENCODER_CONTEXT):
        x = None
        for k, features in enumerate(reversed(network.encode(_part(images, outer, network)))):
            x = network.step(k, x, features)
            merged[k].add(inner.of(x, stride_of(k)))
    return StyleStatistics.of([each.moments() for each in merged], network.eps, method)


@torch.inference_mode()
def reproduce_by_tiles(
    network: StyleNetwork, images: Tensor, *, tile: int, progress: Progress = lambda fraction: None
) -> Tensor:
    """The autoencoder's picture of images (B, 3, H, W), to rounding. tile: its side in pixels."""
    picture = torch.empty_like(images)
    for core, outer, inner in _walk(images, tile, AUTOENCODER_CONTEXT, progress):
        core.of(picture).copy_(inner.of(network(_part(images, outer, network))))
    return picture


@torch.inference_mode()
def stylize_by_tiles(
    network: StyleNetwork,
    content: Tensor,
    style: StyleStatistics,
    strength: float = 1.0,
    *,
    tile: int,
    importance: Tensor | None = None,
    transform: str | Transform = "transport",
    method: str | Method = "auto",
    progress: Progress = lambda fraction: None,
) -> Tensor:
    """:meth:`StyleNetwork.stylize` of pictures, to rounding.

    A picture of no more pixels than two tiles have is computed at once. For others, each transform needs the moments
    of the whole picture after the transforms before it: there is a pass over all tiles for each, and one to paint.
    Features at stride 4 are kept between passes, 32 bytes a pixel in float32 with the default channels; the larger
    ones at strides 2 and 1 are computed again.

    Args:
        network: its device and precision are those of the computation.
        content: (B, 3, H, W) in [0, 1].
        style: of the same network.
        strength: from 0, which is the autoencoder, to 1.
        tile: the side of a tile in pixels.
        importance: see :meth:`StyleNetwork.stylize`.
        transform: see :meth:`StyleNetwork.stylize`.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        progress: is called with the fraction that is done.

    Returns:
        The pictures, (B, 3, H, W), on the content's device and in its dtype.
    """
    transform = transform_of(transform)
    if strength == 0:
        return reproduce_by_tiles(network, content, tile=tile, progress=progress)
    if content.shape[2] * content.shape[3] <= 2 * tile**2:
        device = next(network.parameters()).device
        counts = None if importance is None else importance.to(device)
        picture = network.stylize(
            content.to(device), style, strength, importance=counts, transform=transform, method=method
        )
        progress(1.0)
        return picture.to(content)
    transforms: list[Coloring] = []

    def walk(context: int) -> Iterator[tuple[Tile, Tile, Tile]]:
        before = len(transforms)
        return _walk(content, tile, context, lambda done: progress((before + done) / (TRANSFORMS + 1)))

    def add_transform(merged: MergedMoments) -> None:
        mean, root = style.means[len(transforms)], style.roots[len(transforms)]
        transforms.append(Coloring.between(merged.moments(), mean, root, strength, network.eps, transform, method))

    deep = _empty_features(network, content)
    merged = MergedMoments()
    for core, outer, inner in walk(ENCODER_CONTEXT):
        f3 = inner.of(network.encode(_part(content, outer, network))[-1], _DEEPEST)
        core.of(deep, _DEEPEST).copy_(f3)
        merged.add(f3, _counts(0, core, importance, network))
    add_transform(merged)

    def later_step(k: int, outer: Tile) -> Tensor:
        """What transform k = 1 or 2 is applied to."""
        f1, f2 = network.encode(_part(content, outer, network), scales=2)
        x = network.step(1, transforms[0](outer.of(deep, _DEEPEST)), f2)
        return x if k == 1 else network.step(2, transforms[1](x), f1)

    for k in (1, 2):
        merged = MergedMoments()
        for core, outer, inner in walk(PAINTER_CONTEXT):
            merged.add(inner.of(later_step(k, outer), stride_of(k)), _counts(k, core, importance, network))
        add_transform(merged)

    picture = torch.empty_like(content)
    for core, outer, inner in walk(PAINTER_CONTEXT):
        core.of(picture).copy_(inner.of(network.paint(transforms[2](later_step(2, outer)))))
    return picture


def _walk(
    images: Tensor, size: int, context: int, progress: Progress = lambda fraction: None
) -> Iterator[tuple[Tile, Tile, Tile]]:
    """Tiles of images: each, with its context, and where it lies in that."""
    height, width = images.shape[2:]
    parts = tiles(height, width, size)
    for k, core in enumerate(parts):
        outer = core.widened(context, height, width)
        yield core, outer, core.inside(outer)
        progress((k + 1) / len(parts))


def _counts(k: int, tile: Tile, importance: Tensor | None, network: StyleNetwork) -> Tensor | None:
    """How much the positions of a tile count at transform k."""
    return None if importance is None else counts_at(k, _part(importance, tile, network))


def _part(images: Tensor, tile: Tile, network: StyleNetwork) -> Tensor:
    """A tile of images, on the device of the network."""
    return tile.of(images).to(next(network.parameters()).device)


def _empty_features(network: StyleNetwork, images: Tensor) -> Tensor:
    """For the deepest features of images."""
    batch, _, height, width = images.shape
    shape = (batch, network.channels[-1], -(-height // _DEEPEST), -(-width // _DEEPEST))
    weight = next(network.parameters())
    return torch.empty(shape, dtype=weight.dtype, device=weight.device, memory_format=torch.channels_last)
