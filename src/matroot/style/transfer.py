"""Pictures in the style of other pictures: the function that ``matroot stylize`` is a shell of."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .._inputs import require_tensor
from ..methods import Method
from ..nn.whiten_color import require_blend
from .color import recolored, split_alpha
from .grain import GRAIN, importance, without_grain, without_rings
from .network import StyleNetwork
from .resizing import limited
from .scales import scales_for, transfer_by_scales
from .statistics import StyleStatistics, blend, require_statistics
from .tiled_transfer import Progress, statistics_by_tiles, stylize_by_tiles
from .transforms import Transform
from .weights import load

TILE = 384
"""Side of a tile: smaller ones overlap more, larger ones need more memory and are no faster."""
STYLE_SIZE = 512
"""Longest side that styles are reduced to: brushstrokes must fit into what the network sees at once, 50 pixels."""
BEYOND = 0.5
"""How far from [0, 1] values may be: more are those of another scale."""


def stylize(
    content: Tensor,
    style: Tensor | Sequence[Tensor],
    strength: float = 1.0,
    *,
    weights: Sequence[float] | None = None,
    keep_colors: bool = False,
    max_size: int | None = None,
    style_size: int | None = STYLE_SIZE,
    tile: int = TILE,
    transform: str | Transform = "transport",
    grain: float = GRAIN,
    scales: int | None = None,
    method: str | Method = "auto",
    network: StyleNetwork | None = None,
    progress: Progress = lambda fraction: None,
) -> Tensor:
    """The content in the style of a picture, or of several at once.

    Nothing is differentiable: see :meth:`StyleNetwork.stylize`.

    Args:
        content: (C, H, W) or (B, C, H, W) in [0, 1], floating point, of any size; C is 1 (grey), 2 (grey and alpha),
            3 (RGB) or 4 (RGB and alpha).
        style: a picture (C, H, W) or (1, C, H, W), or a sequence of them, of any sizes.
        strength: 0 is the content as the network reproduces it, 1 the full transfer.
        weights: of several styles, see :func:`blend`.
        keep_colors: give the styles the colours of the content first, so that the brushwork alone is transferred.
        max_size: longest side of the result; a larger content is reduced first.
        style_size: the same for the styles.
        tile: larger pictures are computed in tiles of this side, which bounds memory and does not change the result.
        transform: how features are given the style's covariance: "transport" (:class:`OptimalTransport`), "whitening"
            (:class:`Whitening`), or one of these objects.
        grain: standard deviation, in levels of 255, below which variation counts as noise. The content's is smoothed
            away first, in full from strength 0.5 on. Areas without more, such as clear skies, hardly count in its
            means and covariances, and what changes there is smoothed. 0: none of this.
        scales: at how many the style is transferred, each of half the size, the coarsest first: each more makes the
            broadest strokes twice as broad. Those of less than 32 pixels a side are left out. None: one, two from 1024
            pixels of the longer side on, three from 2048 on.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        network: with weights of your own, see :func:`load`; its device and precision are those of the computation.
            None: with the packaged weights.
        progress: is called with the fraction that is done.

    Returns:
        The pictures, (C, H, W) or (B, C, H, W) in [0, 1], in the content's dtype and on its device; C is 3, or 4 if the
        content has alpha, which is put back.

    Raises:
        TypeError: for integers.
        ValueError: for other shapes, strengths, weights, sizes, transforms, grains and scales, and for values far from
            [0, 1].
        WeightsError: if there are no packaged weights and no network is given.

    Example:
        >>> from matroot.style import StyleNetwork, stylize
        >>> network = StyleNetwork(channels=(4, 4, 4)).eval()
        >>> stylize(torch.rand(3, 20, 24), torch.rand(3, 16, 16), network=network).shape
        torch.Size([3, 20, 24])
    """
    network = load() if network is None else network
    styles = [style] if isinstance(style, Tensor) else list(style)

    def statistics(colors_of: Tensor | None = None) -> StyleStatistics:
        return style_statistics(
            styles,
            weights=weights,
            colors_of=colors_of,
            style_size=style_size,
            tile=tile,
            method=method,
            network=network,
        )

    images = _batch(content, "content")
    shared = None if keep_colors else statistics()
    painted = [
        apply_style(
            image,
            shared or statistics(colors_of=image),
            strength,
            max_size=max_size,
            tile=tile,
            transform=transform,
            grain=grain,
            scales=scales,
            method=method,
            network=network,
            progress=lambda fraction, k=k: progress((k + fraction) / len(images)),
        )
        for k, image in enumerate(images)
    ]
    return torch.stack(painted) if content.ndim == 4 else painted[0]


@torch.inference_mode()
def style_statistics(
    styles: Sequence[Tensor],
    *,
    weights: Sequence[float] | None = None,
    colors_of: Tensor | None = None,
    style_size: int | None = STYLE_SIZE,
    tile: int = TILE,
    method: str | Method = "auto",
    network: StyleNetwork,
) -> StyleStatistics:
    """What a transfer takes from styles, for many calls of :func:`apply_style`.

    Args:
        styles: pictures (C, H, W) or (1, C, H, W) in [0, 1], of any sizes, at least one.
        weights: of several styles, see :func:`blend`.
        colors_of: a picture whose colours the styles are given first, to keep those of a content. Its own are then the
            colours that the style has, and the network transfers what is left: the brushwork.
        style_size: longest side that the styles are reduced to; None: as they are.
        tile: larger pictures are computed in tiles of this side.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        network: whose transforms the statistics are for.

    Returns:
        The statistics of the blend of all styles.

    Raises:
        TypeError: for integers.
        ValueError: for other shapes, weights and sizes, and for values far from [0, 1].

    Example:
        >>> from matroot.style import StyleNetwork, style_statistics
        >>> network = StyleNetwork(channels=(4, 4, 4)).eval()
        >>> style = style_statistics([torch.rand(3, 16, 16), torch.rand(3, 8, 12)], network=network)
        >>> style.roots[0].shape
        torch.Size([1, 4, 4])
    """
    found = []
    for style in styles:
        colors = limited(_one_picture(style, "a style")[0], style_size)
        if colors_of is not None:
            colors = recolored(colors, limited(_one_picture(colors_of, "colors_of")[0], style_size).to(colors))
        found.append(statistics_by_tiles(network, colors, tile=tile, method=method))
    return blend(found, weights)


@torch.inference_mode()
def apply_style(
    content: Tensor,
    style: StyleStatistics,
    strength: float = 1.0,
    *,
    max_size: int | None = None,
    tile: int = TILE,
    transform: str | Transform = "transport",
    grain: float = GRAIN,
    scales: int | None = None,
    method: str | Method = "auto",
    network: StyleNetwork,
    progress: Progress = lambda fraction: None,
) -> Tensor:
    """:func:`stylize` of one picture with a style that is known already.

    Args:
        content: (C, H, W) or (1, C, H, W) in [0, 1], floating point; C is 1 to 4, see :func:`stylize`.
        style: of the same network, see :func:`style_statistics`.
        strength: 0 is the content as the network reproduces it, 1 the full transfer.
        max_size: longest side of the result; a larger content is reduced first.
        tile: larger pictures are computed in tiles of this side.
        transform: see :func:`stylize`.
        grain: see :func:`stylize`.
        scales: see :func:`stylize`.
        method: how the roots are taken, see :func:`matroot.sqrtm`.
        network: its device and precision are those of the computation.
        progress: is called with the fraction that is done.

    Returns:
        The picture, (3, H, W), or (4, H, W) with alpha.

    Raises:
        TypeError: for integers.
        ValueError: for other shapes, strengths, sizes, transforms, grains and scales, and for values far from [0, 1].

    Example:
        >>> from matroot.style import StyleNetwork, apply_style, style_statistics
        >>> network = StyleNetwork(channels=(4, 4, 4)).eval()
        >>> style = style_statistics([torch.rand(3, 16, 16)], network=network)
        >>> apply_style(torch.rand(3, 20, 24), style, strength=0.5, network=network).shape
        torch.Size([3, 20, 24])
    """
    require_blend(strength, "strength")
    require_statistics(style)
    if scales is not None and scales < 1:
        raise ValueError(f"scales must be at least 1, got {scales}")
    colors, alpha = _one_picture(content, "content")
    # All of it from half strength on: less would show, as gains are large before the grain is gone.
    share = min(1.0, 2 * strength)
    colors = without_grain(limited(colors, max_size), grain, share, tile=tile)

    def transfer(x: Tensor, picture: Tensor, progress: Progress) -> Tensor:
        options = {"tile": tile, "transform": transform, "method": method, "progress": progress}
        counts = importance(x, grain, tile=tile)
        painted = stylize_by_tiles(network, x, style, strength, importance=counts, **options)
        return without_rings(painted, picture, grain, share, tile=tile)

    scales = scales_for(*colors.shape[2:]) if scales is None else scales
    painted = transfer_by_scales(colors, scales if strength else 1, transfer, progress)
    if alpha is not None:
        painted = torch.cat((painted, limited(alpha, max_size)), 1)
    return painted[0]


def _one_picture(picture: Tensor, name: str) -> tuple[Tensor, Tensor | None]:
    """(C, H, W) or (1, C, H, W) as RGB (1, 3, H, W), and its alpha (1, 1, H, W) or None."""
    images = _batch(picture, name)
    if images.shape[0] != 1:
        raise ValueError(f"{name} must be one picture, got a batch of {images.shape[0]}")
    return split_alpha(images)


def _batch(picture: Tensor, name: str) -> Tensor:
    """(C, H, W) or (B, C, H, W) as (B, C, H, W).

    Raises for what is no tensor, other shapes, integers, pictures without pixels, NaN, and values from 0 to 255 or from
    -1 to 1, of which nothing would come; rounding and resizing leave [0, 1] by less.
    """
    require_tensor(picture, name)
    if not picture.is_floating_point():
        raise TypeError(f"{name} must be floating point in [0, 1], got {picture.dtype}")
    if picture.ndim not in (3, 4) or 0 in picture.shape:
        raise ValueError(
            f"{name} must be (C, H, W) or (B, C, H, W) with at least one pixel, got {tuple(picture.shape)}"
        )
    least, most = (value.item() for value in picture.detach().aminmax())
    if not (least >= -BEYOND and most <= 1 + BEYOND):  # NaN is neither
        raise ValueError(f"{name} must be in [0, 1], got values from {least:.3g} to {most:.3g}")
    return picture if picture.ndim == 4 else picture.unsqueeze(0)
