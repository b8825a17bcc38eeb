"""The network of the universal transfer: an autoencoder with a transform of means and covariances at three depths."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..gradients import Gradient
from ..methods import Method
from ..nn._validation import require_eps, require_feature_maps
from .statistics import Coloring, Moments, StyleStatistics, require_statistics
from .transforms import Transform, transform_of

TRANSFORMS = 3
"""Transforms on the way from the deepest features to the picture, one a scale."""


class StyleNetwork(nn.Module):
    """Pictures in the style of other pictures.

    An encoder gives features f1 to f3, a decoder paints them. On its way are three transforms, one a scale, the
    deepest first: each gives the features the mean and covariance that the style image has at this place when the
    network reproduces it. Without transforms (strength 0) the network is an autoencoder. There are no normalisation
    layers: the transforms alone change statistics. Features at stride 2 skip to the decoder, which keeps the content
    sharp; those at stride 1 do not, as the picture would be copied. Upsampling is bilinear followed by a convolution:
    of repeated pixels a transform would amplify the blocks, which vary little. Borders are replicated, so that
    pictures may have any size.

    Args:
        channels: widths at strides 1, 2 and 4.
        eps: added to the diagonals of covariances. Features whose variance is far below are noise, which a transform
            without it would amplify to the style's variance.

    Raises:
        ValueError: if ``channels`` are not three positive numbers, or ``eps`` is negative or not finite.

    Example:
        >>> from matroot.style import StyleNetwork
        >>> network = StyleNetwork(channels=(4, 4, 4))
        >>> style = network.statistics(torch.rand(1, 3, 16, 16))
        >>> network.stylize(torch.rand(2, 3, 20, 24), style).shape
        torch.Size([2, 3, 20, 24])
    """

    def __init__(self, channels: Sequence[int] = (32, 64, 128), eps: float = 1e-4) -> None:
        super().__init__()
        require_eps(eps)
        if len(channels) != TRANSFORMS or min(channels) < 1:
            raise ValueError(f"channels must be {TRANSFORMS} positive numbers, got {tuple(channels)}")
        self.channels, self.eps = tuple(channels), eps
        c1, c2, c3 = channels
        self.encoder = nn.ModuleList(
            [
                nn.Sequential(_conv(3, c1), nn.ReLU(inplace=True)),
                nn.Sequential(_conv(c1, c2, stride=2), nn.ReLU(inplace=True), _conv(c2, c2), nn.ReLU(inplace=True)),
                nn.Sequential(
                    _conv(c2, c3, stride=2),
                    nn.ReLU(inplace=True),
                    _conv(c3, c3),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(c3, c3, 1),
                ),
            ]
        )
        self.decoder = nn.ModuleList([_Upward(c3, c2, skip=True), _Upward(c2, c1)])
        self.painter = nn.Sequential(_conv(c1, c1), nn.ReLU(inplace=True), _conv(c1, 3))
        self.reset_parameters()
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def reset_parameters(self) -> None:
        """Kaiming's normal initialisation with biases zero; of the last convolution small, for a grey picture."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(cast(Tensor, module.bias))
        # Far from zero the sigmoid has no gradient.
        nn.init.normal_(cast(nn.Conv2d, self.painter[-1]).weight, std=0.01)

    def encode(self, images: Tensor, scales: int = TRANSFORMS) -> tuple[Tensor, ...]:
        """Features of images; sizes are rounded up.

        Args:
            images: (B, 3, H, W) in [0, 1].
            scales: how many of the strides 1, 2 and 4.

        Returns:
            The features at the first of these strides, (B, C, h, w) each.

        Raises:
            TypeError: for integers and complex numbers.
            ValueError: for another shape.
        """
        require_feature_maps(images, "images", dims=2, channels=3)
        # Centred first: bfloat16 resolves numbers near 1 worse than eight bits do.
        x = (2 * images - 1).to(next(self.parameters()).dtype, memory_format=torch.channels_last)
        features = []
        for scale in self.encoder[:scales]:
            x = scale(x)
            features.append(x)
        return tuple(features)

    def step(self, k: int, x: Tensor | None, features: Tensor) -> Tensor:
        """What a transform is applied to: f3 at step 0, then what the decoder makes at the scales of f2 and f1.

        Args:
            k: number of the transform, from 0.
            x: the output of the transform before; None at step 0.
            features: the encoder's, of the scale of the transform.

        Returns:
            Features of that scale.
        """
        return features if x is None else cast(Tensor, self.decoder[k - 1](x, features))

    def paint(self, x: Tensor) -> Tensor:
        """The output of the last transform as a picture.

        Args:
            x: (B, C, H, W).

        Returns:
            The picture, (B, 3, H, W) in [0, 1], float32 at least.
        """
        logits = self.painter(x)
        return torch.sigmoid(logits.to(torch.promote_types(logits.dtype, torch.float32)))

    def forward(self, images: Tensor) -> Tensor:
        """The images as far as the network can reproduce them.

        Args:
            images: (B, 3, H, W) in [0, 1].

        Returns:
            The pictures, (B, 3, H, W) in [0, 1].

        Raises:
            TypeError: for integers and complex numbers.
            ValueError: for another shape.
        """
        x = None
        for k, features in enumerate(reversed(self.encode(images))):
            x = self.step(k, x, features)
        return self.paint(cast(Tensor, x))

    def statistics(
        self, images: Tensor, *, method: str | Method = "auto", gradient: str | Gradient | None = None
    ) -> StyleStatistics:
        """What a transfer takes from style images: of the autoencoder, at the three transforms.

        Args:
            images: (B, 3, H, W) in [0, 1].
            method: how the roots are taken, see :func:`matroot.sqrtm`.
            gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

        Returns:
            Means and roots of covariances, with the batch of the images.

        Raises:
            TypeError: for integers and complex numbers.
            ValueError: for another shape.
        """
        moments, x = [], None
        for k, features in enumerate(reversed(self.encode(images))):
            x = self.step(k, x, features)
            moments.append(Moments.of(x))
        return StyleStatistics.of(moments, self.eps, method, gradient)

    def stylize(
        self,
        content: Tensor,
        style: StyleStatistics,
        strength: float | Tensor = 1.0,
        *,
        importance: Tensor | None = None,
        transform: str | Transform = "transport",
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> Tensor:
        """The content in one style, or each image in its own.

        All of it is in memory at once, and all is differentiable.

        Args:
            content: (B, 3, H, W) in [0, 1].
            style: with a batch of 1 or B.
            strength: from 0, which is the autoencoder, to 1; or a tensor (B,).
            importance: (B or 1, 1, H, W) above 0, how much each pixel counts in the content's statistics; None: all the
                same.
            transform: "transport" or "whitening", or an :class:`OptimalTransport` or :class:`Whitening`.
            method: how the roots are taken, see :func:`matroot.sqrtm`.
            gradient: how their derivatives are computed, see :func:`matroot.sqrtm`.

        Returns:
            The pictures, (B, 3, H, W) in [0, 1].

        Raises:
            TypeError: for integers and complex numbers, and for a style that is a picture.
            ValueError: for other shapes, a style of another batch or network, or an unknown transform.
        """
        transform = transform_of(transform)
        require_statistics(style)
        if importance is not None and importance.shape not in {(b, 1, *content.shape[2:]) for b in (1, len(content))}:
            shapes = f"content {tuple(content.shape)}, importance {tuple(importance.shape)}"
            raise ValueError(f"importance must be (B or 1, 1, H, W) for a content (B, 3, H, W); got {shapes}")
        if not isinstance(strength, Tensor) and strength == 0:
            return self(content)
        x = None
        for k, features in enumerate(reversed(self.encode(content))):
            x = self.step(k, x, features)
            moments = Moments.of(x, counts_at(k, importance))
            mean, root = style.means[k], style.roots[k]
            x = Coloring.between(moments, mean, root, strength, self.eps, transform, method, gradient)(x)
        return self.paint(cast(Tensor, x))

    def extra_repr(self) -> str:
        return f"channels={self.channels}, eps={self.eps:g}"


def stride_of(k: int) -> int:
    """Of the features that transform k is applied to."""
    return 2 ** (TRANSFORMS - 1 - k)


def counts_at(k: int, importance: Tensor | None) -> Tensor | None:
    """How much positions count at transform k: the mean importance of their pixels."""
    if importance is None:
        return None
    stride = stride_of(k)
    return functional.avg_pool2d(importance, stride, ceil_mode=True, count_include_pad=False)


class _Upward(nn.Module):
    """From a scale to that of half its stride: a convolution, upsampling, another, and the encoder's features."""

    def __init__(self, inputs: int, outputs: int, skip: bool = False) -> None:
        super().__init__()
        self.below = _conv(inputs, outputs)
        self.above = _conv(outputs, outputs)
        self.skip = nn.Conv2d(outputs, outputs, 1) if skip else None

    def forward(self, x: Tensor, features: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, outputs, H, W) of the encoder's features at that scale."""
        height, width = features.shape[2:]
        x = functional.relu(self.below(x), inplace=True)
        # Sizes were rounded up: at the right and at the bottom a row may be too many.
        x = functional.interpolate(x, scale_factor=2, mode="bilinear")[..., :height, :width]
        x = self.above(x)
        return x if self.skip is None else x + self.skip(features)


def _conv(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, padding_mode="replicate")
