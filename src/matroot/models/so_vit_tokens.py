"""From images to tokens: the convolutional stem of second-order transformers, and where its tokens stand."""

from functools import partial

import torch
from torch import Tensor, nn

from . import _torchvision as _torchvision  # before torchvision itself

from torchvision.models.resnet import Bottleneck, conv1x1  # isort: skip

HALVINGS = 4
"""Of the published stem: the max-pool, then the three bottlenecks."""


class ConvolutionalTokens(nn.Module):
    """3x3 convolution, max-pool, three bottlenecks, 1x1 convolution: (B, C, H, W) -> (B, N, width).

    N is ceil(H/patch) ceil(W/patch), row by row.

    Args:
        width: features of a token.
        in_channels: C.
        patch: pixels of an image's side for each token. Published is 16. Less for small images: 8 has no max-pool, with
            4 the first bottleneck keeps the size of the map too, with 2 the second, with 1 all three.
        stem_width: channels of the first convolution; bottlenecks have these within and four times as many outside.

    Raises:
        ValueError: for another patch.
    """

    def __init__(self, width: int, in_channels: int = 3, patch: int = 16, stem_width: int = 64) -> None:
        super().__init__()
        if patch not in (choices := [2**k for k in range(HALVINGS + 1)]):
            raise ValueError(f"patch must be one of {', '.join(map(str, choices))}; got {patch!r}")
        self.patch = patch
        pooled, *strides = (2 if patch >= 2 ** (HALVINGS - i) else 1 for i in range(HALVINGS))
        self.convolution = nn.Conv2d(in_channels, stem_width, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, padding=1) if pooled == 2 else nn.Identity()
        norm = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        wide = stem_width * Bottleneck.expansion
        self.blocks = nn.Sequential()
        for i, stride in enumerate(strides):
            channels = wide if i else stem_width
            shortcut = nn.Sequential(conv1x1(channels, wide, stride), norm(wide))
            self.blocks.append(Bottleneck(channels, stem_width, stride, shortcut, norm_layer=norm))
        self.projection = nn.Conv2d(wide, width, 1)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def grid(self, image_size: int) -> int:
        """Tokens along a side of square images."""
        return -(-image_size // self.patch)

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(self.blocks(self.pool(self.convolution(images)))).flatten(2).mT


def patch_for(image_size: int) -> int:
    """The largest patch that gives square images 8 x 8 tokens or more; 1 where none does."""
    return max((2**k for k in range(HALVINGS + 1) if image_size >= 8 * 2**k), default=1)


def sinusoidal_positions(count: int, width: int) -> Tensor:
    """(count, width), float32: entry (p, i) is the sine, for odd i the cosine, of p/10000^(2 floor(i/2)/width)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    feature = torch.arange(width, dtype=torch.float64)
    angle = position * 10000.0 ** (-2 * torch.floor(feature / 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).float()
