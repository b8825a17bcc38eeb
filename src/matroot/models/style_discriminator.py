"""Discriminators of style exchange: whether parts of an image, at three sizes, are of a domain."""

from torch import Tensor, nn

CHANNELS = (64, 128, 256, 512)
"""Of the published convolutions."""
SCALES = 3
SLOPE = 0.2
"""Of the leaky ReLU."""


class StyleDiscriminator(nn.Module):
    """Images (B, 3, H, W) -> scores (B, 1, h, w), one map a scale: 1 for images of the domain, 0 for others.

    Convolutions pad by reflection, which needs two pixels: :func:`smallest_image` says how many of the whole image.

    Args:
        channels: of the 4x4 convolutions of stride 2; fewer for tests.
        scales: the image itself, then each time half as large.
    """

    def __init__(self, channels: tuple[int, ...] = CHANNELS, scales: int = SCALES) -> None:
        super().__init__()
        self.halve = nn.AvgPool2d(3, 2, padding=1, count_include_pad=False)
        self.scales = nn.ModuleList(_one_scale(channels) for _ in range(scales))

    def forward(self, images: Tensor) -> list[Tensor]:
        scores = []
        for k, scale in enumerate(self.scales):
            images = self.halve(images) if k else images
            scores.append(scale(images))
        return scores


def smallest_image(channels: tuple[int, ...] = CHANNELS, scales: int = SCALES) -> int:
    """Pixels of the side of the smallest square image a discriminator can judge.

    Args:
        channels: of the discriminator.
        scales: of the discriminator.

    Returns:
        The number of pixels.
    """
    # Two before the last convolution of the last scale, and twice as many before each halving above it.
    return 2 ** (len(channels) + scales - 1)


def _one_scale(channels: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in zip((3, *channels), channels, strict=False):
        layers += [nn.Conv2d(before, after, 4, 2, 1, padding_mode="reflect"), nn.LeakyReLU(SLOPE, inplace=True)]
    layers.append(nn.Conv2d(channels[-1], 1, 1))
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]
    return nn.Sequential(*layers)
