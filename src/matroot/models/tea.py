"""TEA-ResNet-50 with temporal-attentive covariance pooling, for videos."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from torch import Tensor, nn

from .._names import valid_names
from ..gradients import Gradient
from ..methods import Method
from ..nn import CovariancePool, TemporalAttention, TemporalCovariancePool
from ..nn._channel_reduction import channel_reduction
from ._arguments import recorded
from ._presets import is_baseline, root_options
from .tea_blocks import EXPANSION, TEABlock

Pool = Literal["video", "window"]
STRIDES = (1, 2, 2, 1)


class AveragePool(nn.Module):
    """Mean over frames and positions: (B, T, C, H, W) -> (B, C)."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.out_features = in_channels

    def forward(self, video: Tensor) -> Tensor:
        return video.mean((1, 3, 4))


class AttentivePool(nn.Module):
    """Reduction of channels, temporal attention, and the root of a covariance: (B, T, C, H, W) -> (B, n (n + 1)/2).

    Args:
        in_channels: C.
        reduce_to: channels after each 1x1 convolution with normalisation and ReLU; the last is n.
        covariance: pool of n channels, (B, n, T, H, W) -> (B, n (n + 1)/2).
    """

    def __init__(
        self, in_channels: int, reduce_to: Sequence[int], covariance: CovariancePool | TemporalCovariancePool
    ) -> None:
        super().__init__()
        widths = (in_channels, *reduce_to)
        self.reduce = nn.Sequential(*(channel_reduction(*pair, dims=2) for pair in pairwise(widths)))
        self.attention = TemporalAttention(widths[-1])
        self.covariance = covariance
        self.out_features = widths[-1] * (widths[-1] + 1) // 2

    def forward(self, video: Tensor) -> Tensor:
        reduced = self.reduce(video.flatten(0, 1)).unflatten(0, video.shape[:2])
        return self.covariance(self.attention(reduced.transpose(1, 2)))


class TEAResNet(nn.Module):
    """Res2Net with motion excitation and temporal convolutions, a pool over the whole video and a linear classifier.

    Clips (B, T, in_channels, H, W), of any number of frames, give (B, num_classes).

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        pool: (B, T, C, H, W) -> (B, pool.out_features), for the C = 32 ``width`` channels of the last stage.
        in_channels: channels of the frames.
        width: channels of the stem, and planes of the first stage; each stage has twice those of the stage before.
        depths: blocks of the stages.
        dropout: probability, before the classifier.

    Raises:
        ValueError: if ``num_classes`` is negative; when called with clips of another shape.
    """

    def __init__(
        self,
        num_classes: int,
        pool: AveragePool | AttentivePool,
        in_channels: int = 3,
        width: int = 64,
        depths: Sequence[int] = (3, 4, 6, 3),
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.num_classes, self.in_channels = num_classes, in_channels
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        )
        self.stages = nn.ModuleList()
        channels, planes = width, width
        for depth, stride in zip(depths, STRIDES, strict=True):
            stage = nn.ModuleList()
            for i in range(depth):
                # 26 channels a split for 64 planes.
                stage.append(TEABlock(channels, planes, planes * 26 // 64, stride if i == 0 else 1, first=i == 0))
                channels = EXPANSION * planes
            self.stages.append(stage)
            planes *= 2
        self.pool = pool
        self.dropout = nn.Dropout(dropout)
        self.classifier = self._new_classifier(num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def get_classifier(self) -> nn.Module:
        """The last linear layer, ``nn.Identity`` without classes."""
        return self.classifier

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the last linear layer by a new one, on the same device; 0 leaves it out."""
        weight = next(self.parameters())
        self.classifier = self._new_classifier(num_classes).to(weight.device, weight.dtype)
        self.num_classes = num_classes

    def _new_classifier(self, num_classes: int) -> nn.Module:
        if num_classes < 0:
            raise ValueError(f"num_classes must be 0 or more, got {num_classes}")
        return nn.Linear(self.pool.out_features, num_classes) if num_classes else nn.Identity()

    def forward_features(self, clips: Tensor) -> Tensor:
        """Clips (B, T, in_channels, H, W) -> features (B, T, C, H/16, W/16)."""
        if clips.ndim != 5 or clips.shape[2] != self.in_channels:
            raise ValueError(f"clips must be (B, T, {self.in_channels}, H, W), got shape {tuple(clips.shape)}")
        frames = clips.shape[1]
        x = self.stem(clips.flatten(0, 1))
        for stage in self.stages:
            assert isinstance(stage, nn.ModuleList)
            for block in stage:
                x = block(x, frames)
        return x.unflatten(0, (-1, frames))

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """Features of ``forward_features`` -> logits, or what the classifier sees."""
        pooled = self.dropout(self.pool(features))
        return pooled if pre_logits else self.classifier(pooled)

    def forward(self, clips: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(clips))


@recorded
def tea50_tcp(
    num_classes: int = 51,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    in_channels: int = 3,
    pool: Pool = "video",
    width: int = 64,
    depths: Sequence[int] = (3, 4, 6, 3),
    reduce_to: Sequence[int] = (256, 128),
    dropout: float = 0.5,
) -> TEAResNet:
    """TEA-ResNet-50 with temporal-attentive covariance pooling, for videos.

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        preset: how the root is computed, see :func:`matroot.models.create`; ``baseline`` averages frames and positions
            instead.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the frames.
        pool: ``video`` for one covariance over the video, ``window`` for those of a sliding window of frames.
        width: channels of the stem; the published 64, or fewer for tests.
        depths: blocks of the four stages.
        reduce_to: channels before the covariance, after each of the convolutions that reduce them; one at least.
        dropout: probability, before the classifier.

    Returns:
        The network, which takes clips (B, T, in_channels, H, W) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset or pool, a baseline with a method or gradient, and values that do not fit.

    Example:
        >>> from matroot.models import tea50_tcp
        >>> model = tea50_tcp(width=16, depths=(1, 1, 1, 1), reduce_to=(16, 8))
        >>> model(torch.randn(2, 4, 3, 32, 32)).shape
        torch.Size([2, 51])
    """
    if pool not in get_args(Pool):
        raise ValueError(f"unknown pool {pool!r}; {valid_names(pool, get_args(Pool))}")
    if not reduce_to:
        raise ValueError("reduce_to must have one number of channels at least, got none")
    root = root_options(preset, method, gradient)
    channels = EXPANSION * width * 2 ** (len(STRIDES) - 1)
    if is_baseline(preset):
        pooling = AveragePool(channels)
    elif pool == "video":
        pooling = AttentivePool(channels, reduce_to, CovariancePool(reduce_to[-1], None, dims=3, **root))
    else:
        pooling = AttentivePool(channels, reduce_to, TemporalCovariancePool(**root))
    return TEAResNet(num_classes, pooling, in_channels, width, depths, dropout)
