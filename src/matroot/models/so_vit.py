"""Second-order vision transformers, So-ViT: images are classified from the covariance of their tokens too."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..gradients import Gradient
from ..methods import Method
from ..nn import SecondOrderHead
from ._arguments import recorded
from ._presets import is_baseline, root_options
from .so_vit_encoder import EncoderBlock
from .so_vit_head import ClassTokenHead, LearnedPowerPool, initialise, power_head, replace_classifiers, require_classes
from .so_vit_tokens import ConvolutionalTokens, patch_for, sinusoidal_positions

Head = SecondOrderHead | ClassTokenHead


class SoViT(nn.Module):
    """Convolutional tokens, a class token, an encoder and a head.

    Images (B, C, image_size, image_size) give (B, num_classes).

    Args:
        tokens: (B, C, H, W) -> (B, N, width).
        head: (B, 1 + N, width) -> (B, num_classes), the class token first.
        width: features of a token, a multiple of 64.
        depth: blocks of the encoder.
        mlp_ratio: width of their hidden layer, in units of ``width``.
        image_size: side of the square images.
        drop_path: probability that an image skips a branch of the last block in training; it grows linearly from 0.

    Raises:
        ValueError: when called with images of another size.
    """

    positions: Tensor

    def __init__(
        self,
        tokens: ConvolutionalTokens,
        head: Head,
        width: int,
        depth: int,
        mlp_ratio: int,
        image_size: int = 224,
        drop_path: float = 0.1,
    ) -> None:
        super().__init__()
        self.num_classes, self.image_size = head.num_classes, image_size
        self.tokens = tokens
        self.class_token = nn.Parameter(torch.empty(width))
        # They follow from the sizes: weights of one image size fit another.
        positions = sinusoidal_positions(1 + tokens.grid(image_size) ** 2, width)
        self.register_buffer("positions", positions, persistent=False)
        self.encoder = nn.Sequential(
            *(EncoderBlock(width, mlp_ratio, drop_path * i / max(depth - 1, 1)) for i in range(depth))
        )
        self.norm = nn.LayerNorm(width)
        self.head = head
        nn.init.trunc_normal_(self.class_token, std=0.02)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                initialise(layer)

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        # They are not among the weights: ``to_empty`` gives memory that holds anything, ``assign=True`` none.
        if self.positions.is_meta:
            self.positions = torch.empty_like(self.positions, device=self.class_token.device)
        self.positions.copy_(sinusoidal_positions(*self.positions.shape))

    def get_classifier(self) -> nn.Module:
        """The head: its linear maps are those that ``reset_classifier`` replaces."""
        return self.head

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the linear maps of the head by new ones; what reduces the tokens for the covariance stays."""
        replace_classifiers(self.head, num_classes)
        self.num_classes = num_classes

    def require_preset(self, preset: str) -> None:
        """Raise ValueError if ``preset`` is not of this network's parameters: ``pi`` has a learned vector more."""
        learned = isinstance(getattr(self.head, "pool", None), LearnedPowerPool)
        if learned != (preset == "pi"):
            raise ValueError(f"the network of preset 'pi' has parameters of its own: build it with preset={preset!r}")

    def forward_features(self, images: Tensor) -> Tensor:
        """Images (B, C, image_size, image_size) -> normalised tokens (B, 1 + N, width), the class token first."""
        if images.shape[-2:] != (self.image_size, self.image_size):
            shape = tuple(images.shape)
            raise ValueError(f"images must have {self.image_size} x {self.image_size} pixels, got shape {shape}")
        tokens = self.tokens(images)
        tokens = torch.cat([self.class_token.expand(tokens.shape[0], 1, -1), tokens], 1)  # len() is fixed in a graph
        return self.norm(self.encoder(tokens + self.positions))

    def forward_head(self, tokens: Tensor) -> Tensor:
        """Tokens of ``forward_features`` -> logits (B, num_classes)."""
        return self.head(tokens)

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))


@dataclass(frozen=True)
class Size:
    """One of the published sizes."""

    width: int
    depth: int
    mlp_ratio: int
    reduce_to: int


def _builder(name: str, size: Size) -> Callable[..., SoViT]:
    def build(
        num_classes: int = 1000,
        preset: str = "default",
        method: str | Method | None = None,
        gradient: str | Gradient | None = None,
        *,
        in_channels: int = 3,
        image_size: int = 224,
        patch: int | None = None,
        drop_path: float = 0.1,
        width: int = size.width,
        depth: int = size.depth,
        reduce_to: int = size.reduce_to,
        stem_width: int = 64,
    ) -> SoViT:
        require_classes(num_classes)
        root = root_options(preset, method, gradient)
        if is_baseline(preset):
            head = ClassTokenHead(width, num_classes)
        elif preset == "pi":
            if method is not None or gradient is not None:
                raise ValueError("preset 'pi' has a method and gradient of its own, give neither")
            head = power_head(width, num_classes, reduce_to)
        else:
            head = SecondOrderHead(width, num_classes, reduce_to, **root)
        tokens = ConvolutionalTokens(width, in_channels, patch_for(image_size) if patch is None else patch, stem_width)
        return SoViT(tokens, head, width, depth, size.mlp_ratio, image_size, drop_path)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""So-ViT-{size.depth}, a vision transformer that also classifies by the covariance of its tokens.

    Args:
        num_classes: number of logits, 1 or more.
        preset: how the root is computed, see :func:`matroot.models.create`. ``pi`` is the published power step from a
            learned vector, ``baseline`` classifies from the class token alone.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the images.
        image_size: side of the square images.
        patch: pixels of an image's side for each token, 16, 8, 4, 2 or 1. None: the largest that gives 8 x 8 tokens or
            more, the published 16 from 128 pixels on, 8 for 64 and 4 for 32.
        drop_path: probability that an image skips a branch of the last block; it grows linearly from 0 in the first.
        width: features of a token.
        depth: number of blocks.
        reduce_to: features in the covariance.
        stem_width: channels of the first convolution.

    Returns:
        The network, which takes images (B, in_channels, image_size, image_size) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset or patch, and for a baseline or ``pi`` with a method or gradient.

    Example:
        >>> from matroot.models import {name}
        >>> model = {name}(num_classes=10, image_size=32, width=64, depth=1, reduce_to=8)
        >>> model(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    return recorded(build)


so_vit_7 = _builder("so_vit_7", Size(width=256, depth=7, mlp_ratio=2, reduce_to=48))
so_vit_10 = _builder("so_vit_10", Size(width=256, depth=10, mlp_ratio=2, reduce_to=48))
so_vit_14 = _builder("so_vit_14", Size(width=384, depth=14, mlp_ratio=3, reduce_to=64))
so_vit_19 = _builder("so_vit_19", Size(width=448, depth=19, mlp_ratio=3, reduce_to=64))
