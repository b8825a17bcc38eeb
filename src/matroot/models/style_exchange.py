"""Exchange of styles between photos and paintings: two generators with five whitening and colouring transforms each."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from .._registry import validate
from ..gradients import Gradient
from ..methods import Method
from ..nn import Coloring, WhitenColor, covariance
from ._arguments import recorded
from ._presets import is_baseline, root_options

ALPHA, EPS = 0.6, 1e-5
"""Of the published transforms: where the learned blend starts, and what is added to the diagonals of covariances."""
TRANSFORMS = 5
"""Of one decoder: one before its residual blocks, and one after each."""
STRIDE = 4
"""Of the content feature: sides of images are multiples of it."""
STYLE_STRIDE = 16
"""Of the style feature."""


@dataclass(frozen=True)
class StyleCode:
    """What transforms take from a style feature (B, C, h, w), and all they take."""

    mean: Tensor
    """(B, C)."""
    covariance: Tensor
    """(B, C, C), divided by hw - 1."""


def style_code(style: Tensor) -> StyleCode:
    """Mean and covariance of a style feature (B, C, h, w), in float32 at least."""
    mean = style.flatten(2).to(torch.promote_types(style.dtype, torch.float32)).mean(-1)
    return StyleCode(mean, covariance(style, correction=1))


class ContentEncoder(nn.Sequential):
    """Images (B, 3, H, W) -> (B, 4 width, H/4, W/4).

    Instance normalisation takes the style away; without a scale of its own it also fixes the size of the feature,
    which whitening does not see and losses on content codes would shrink.
    """

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__(
            *_layer(3, width, 7, 1, nn.InstanceNorm2d(width)),
            *_layer(width, 2 * width, 4, 2, nn.InstanceNorm2d(2 * width)),
            *_layer(2 * width, 4 * width, 4, 2, nn.InstanceNorm2d(4 * width)),
            *(ResidualBlock(4 * width, normalised=True) for _ in range(blocks)),
        )


class StyleEncoder(nn.Sequential):
    """Images (B, 3, H, W) -> (B, 4 width, about H/16, W/16): each position describes a part of the image."""

    def __init__(self, width: int) -> None:
        channels = (width, 2 * width, 4 * width, 4 * width, 4 * width)
        super().__init__(
            *_layer(3, width, 7, 1, _group_norm(width)),
            *(
                layer
                for before, after in pairwise(channels)
                for layer in _layer(before, after, 4, 2, _group_norm(after))
            ),
        )


class Decoder(nn.Module):
    """Content (B, 4 width, h, w) and style (B, 4 width, ., .) -> images (B, 3, 4h, 4w) in [-1, 1].

    A transform, then residual blocks with a transform after each; twice as many pixels and half the channels, two
    times. Only transforms normalise before the last two layers, and these normalise all channels together: instance
    normalisation would take away the style that was just given.
    """

    def __init__(self, width: int, transforms: list[WhitenColor]) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        self.blocks = nn.ModuleList(ResidualBlock(4 * width, normalised=False) for _ in transforms[1:])
        self.upsample = nn.Sequential(
            nn.Upsample(scale_factor=2),
            *_layer(4 * width, 2 * width, 5, 1, nn.GroupNorm(1, 2 * width)),
            nn.Upsample(scale_factor=2),
            *_layer(2 * width, width, 5, 1, nn.GroupNorm(1, width)),
            _convolution(width, 3, 7, 1, bias=True),
            nn.Tanh(),
        )

    def coloring(self, style: Tensor) -> Coloring:
        """What all transforms take from a style: their options are the same."""
        first = self.transforms[0]
        assert isinstance(first, WhitenColor)
        return first.coloring(style)

    def forward(self, content: Tensor, style: Tensor | Coloring) -> Tensor:
        style = self.coloring(style) if isinstance(style, Tensor) else style
        x = _transform(self.transforms[0], content, style)
        for block, transform in zip(self.blocks, list(self.transforms)[1:], strict=True):
            x = _transform(transform, block(x), style)
        return self.upsample(x)


class Generator(nn.Module):
    """Encoders of one domain, and a decoder that makes images of this domain.

    Args:
        width: channels of the first layers.
        blocks: residual blocks of the content encoder.
        transforms: of the decoder, which has a residual block less.
        published_style_code: average the style feature over the image, as the published code does.
    """

    def __init__(self, width: int, blocks: int, transforms: list[WhitenColor], published_style_code: bool) -> None:
        super().__init__()
        self.published_style_code = published_style_code
        self.content_encoder = ContentEncoder(width, blocks)
        self.style_encoder = StyleEncoder(width)
        self.decoder = Decoder(width, transforms)

    def content(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) in [-1, 1] -> (B, 4 width, H/4, W/4); ValueError unless H and W are multiples of 4."""
        if images.shape[-1] % STRIDE or images.shape[-2] % STRIDE:
            raise ValueError(f"sides of images must be multiples of {STRIDE}, got {tuple(images.shape)}")
        return self.content_encoder(images)

    def style(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) in [-1, 1] -> (B, 4 width, about H/16, W/16), or (B, 4 width, 1, 1) as published."""
        feature = self.style_encoder(images)
        return feature.mean((2, 3), keepdim=True) if self.published_style_code else feature

    def coloring(self, style: Tensor) -> Coloring:
        """What :meth:`decode` takes from a style; made once, it serves several contents."""
        return self.decoder.coloring(style)

    def decode(self, content: Tensor, style: Tensor | Coloring) -> Tensor:
        """The image of this domain with this content and style, (B, 3, H, W) in [-1, 1]."""
        return self.decoder(content, style)


class StyleExchange(nn.Module):
    """A generator for photos and one for paintings, whose content features mean the same.

    Args:
        photo: encodes photos, and makes them.
        painting: encodes paintings, and makes them.

    Example:
        >>> from matroot.models import style_exchange
        >>> model = style_exchange(width=8, blocks=1)
        >>> photos, paintings = torch.rand(2, 1, 3, 64, 64) * 2 - 1
        >>> as_paintings, as_photos = model(photos, paintings)
        >>> as_paintings.shape
        torch.Size([1, 3, 64, 64])
    """

    def __init__(self, photo: Generator, painting: Generator) -> None:
        super().__init__()
        self.photo, self.painting = photo, painting

    def to_paintings(self, photos: Tensor, paintings: Tensor) -> Tensor:
        """What photos show, in the style of paintings; all in [-1, 1].

        Args:
            photos: (B, 3, H, W), with H and W multiples of 4.
            paintings: (B, 3, h, w).

        Returns:
            The images, (B, 3, H, W).

        Raises:
            ValueError: for other sizes of photos.
        """
        return self.painting.decode(self.photo.content(photos), self.painting.style(paintings))

    def to_photos(self, paintings: Tensor, photos: Tensor) -> Tensor:
        """What paintings show, in the style of photos; all in [-1, 1].

        Args:
            paintings: (B, 3, H, W), with H and W multiples of 4.
            photos: (B, 3, h, w).

        Returns:
            The images, (B, 3, H, W).

        Raises:
            ValueError: for other sizes of paintings.
        """
        return self.photo.decode(self.painting.content(paintings), self.photo.style(photos))

    def forward(self, photos: Tensor, paintings: Tensor) -> tuple[Tensor, Tensor]:
        """Each in the style of the other; all in [-1, 1].

        Args:
            photos: (B, 3, H, W), with H and W multiples of 4.
            paintings: (B, 3, h, w), with h and w multiples of 4.

        Returns:
            Photos as paintings, (B, 3, H, W), and paintings as photos, (B, 3, h, w).

        Raises:
            ValueError: for other sizes.
        """
        return self.to_paintings(photos, paintings), self.to_photos(paintings, photos)

    def require_preset(self, preset: str) -> None:
        """Refuse a preset that lacks one of the two roots; ``set_preset`` asks.

        Args:
            preset: its name.

        Raises:
            ValueError: if the preset has no inverse root.
        """
        options = root_options(preset)
        validate(options.get("method", "auto"), options.get("gradient"), "both")


@recorded
def style_exchange(
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    width: int = 64,
    blocks: int = 4,
    alpha: float = ALPHA,
    eps: float = EPS,
    published_style_code: bool = False,
) -> StyleExchange:
    """The paper's network for style transfer: two generators of 13.9 M parameters each.

    Args:
        preset: how roots are computed, see :func:`matroot.models.create`. ``baseline`` gives every channel its own mean
            and deviation in the place of all their covariances: adaptive instance normalisation.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        width: channels of the first layers; the published 64, or fewer for tests. Features have four times as many.
        blocks: residual blocks of an encoder, and of a decoder, which has one transform more.
        alpha: blend of transforms at the start; each learns its own.
        eps: added to the diagonals of covariances.
        published_style_code: average the style feature to one position, as the published code does. Its covariance is
            then zero, and colouring multiplies by the root of eps: only the mean of the style is left.

    Returns:
        The network, with new weights.

    Raises:
        ValueError: for an unknown preset, for one without an inverse root, and for values out of range.

    Example:
        >>> from matroot.models import style_exchange
        >>> model = style_exchange(width=8, blocks=1)
        >>> model.to_paintings(torch.zeros(1, 3, 64, 64), torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 3, 64, 64])
    """
    options = root_options(preset, method, gradient)
    groups = 4 * width if is_baseline(preset) else 1

    def generator() -> Generator:
        transforms = [WhitenColor(alpha, groups=groups, eps=eps, **options) for _ in range(blocks + 1)]
        return Generator(width, blocks, transforms, published_style_code)

    return StyleExchange(generator(), generator())


class ResidualBlock(nn.Module):
    """x + two 3x3 convolutions of it, ReLU between them."""

    def __init__(self, channels: int, normalised: bool) -> None:
        super().__init__()
        norms = [nn.InstanceNorm2d(channels) if normalised else nn.Identity() for _ in range(2)]
        convolutions = [_convolution(channels, channels, 3, 1, bias=not normalised) for _ in range(2)]
        self.layers = nn.Sequential(convolutions[0], norms[0], nn.ReLU(inplace=True), convolutions[1], norms[1])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


def _transform(transform: nn.Module, content: Tensor, style: Coloring) -> Tensor:
    # The published blend is with the deviations of the content: its mean is not kept, whatever alpha.
    return transform(content - content.mean((2, 3), keepdim=True), style)


def _layer(before: int, after: int, kernel: int, stride: int, norm: nn.Module) -> tuple[nn.Module, ...]:
    return _convolution(before, after, kernel, stride, bias=False), norm, nn.ReLU(inplace=True)


def _convolution(before: int, after: int, kernel: int, stride: int, bias: bool) -> nn.Conv2d:
    """Reflection padding that keeps the size, or halves it; no bias where a normalisation takes it away."""
    padding = (kernel - 1) // 2
    layer = nn.Conv2d(before, after, kernel, stride, padding, bias=bias, padding_mode="reflect")
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _group_norm(channels: int) -> nn.GroupNorm:
    """32 groups, or as many of these as divide the channels."""
    return nn.GroupNorm(math.gcd(32, channels), channels)
