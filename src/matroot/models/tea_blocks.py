"""Blocks of TEA-ResNet: motion excitation, and convolutions of single channels in time.

Frames travel as a batch of images (B T, C, H, W), so that convolutions in space are those of images; what mixes frames
is told their number T.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import _torchvision as _torchvision  # before torchvision itself

from torchvision.models.resnet import conv1x1, conv3x3  # isort: skip

SPLITS = 4
EXPANSION = 4
"""Channels of a block's output, in units of its planes."""


class TemporalConvolution(nn.Module):
    """Convolution of every channel for itself over three frames, zero before the first and after the last.

    (B T, C, H, W) and T give (B T, C, H, W), in the memory format of the input.

    Args:
        channels: C.
        start: what the layer computes at first. ``identity``: its input. ``shift``: frame t has the first half of the
            channels of frame t + 1 and the second half of those of frame t - 1.
    """

    def __init__(self, channels: int, start: Literal["identity", "shift"] = "identity") -> None:
        super().__init__()
        self.channels, self.start = channels, start
        self.weight = nn.Parameter(torch.empty(channels, 3))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise again, as the constructor does; of use after ``to_empty``."""
        half = self.channels // 2
        with torch.no_grad():
            self.weight.zero_()
            if self.start == "identity":
                self.weight[:, 1] = 1
            else:
                self.weight[:half, 2] = 1
                self.weight[half:, 0] = 1

    def forward(self, x: Tensor, frames: int) -> Tensor:
        clips = x.unflatten(0, (-1, frames))
        before, now, after = self.weight.to(x.dtype)[..., None, None].unbind(1)
        # Sums in place: padding or concatenating frames would give up the channels-last format.
        out = clips * now
        out[:, 1:] += clips[:, :-1] * before
        out[:, :-1] += clips[:, 1:] * after
        return out.flatten(0, 1)

    def extra_repr(self) -> str:
        return f"{self.channels}, start={self.start!r}"


class MotionExcitation(nn.Module):
    """Amplifies the channels that change from a frame to the next: x + x a.

    b = norm(1x1 convolution of x to C/reduction channels), d_t = convolution(b_{t+1}) - b_t and 0 for the last frame,
    a = sigmoid(norm(1x1 convolution of the spatial mean of d to C channels)) - 1/2.

    (B T, C, H, W) and T give (B T, C, H, W).
    """

    def __init__(self, channels: int, reduction: int = 16) -> None:
        super().__init__()
        reduced = max(channels // reduction, 1)
        self.squeeze = nn.Sequential(conv1x1(channels, reduced), nn.BatchNorm2d(reduced))
        self.align = conv3x3(reduced, reduced, groups=reduced)
        self.expand = nn.Sequential(conv1x1(reduced, channels), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor, frames: int) -> Tensor:
        squeezed = self.squeeze(x)
        # The mean of a difference is that of the means, which are a few numbers a frame.
        means, aligned = (
            m.mean((-2, -1)).unflatten(0, (-1, frames)) for m in (squeezed, self.align(squeezed))
        )  # (B, T, C/reduction)
        motion = functional.pad(aligned[:, 1:] - means[:, :-1], (0, 0, 0, 1))
        gate = torch.sigmoid(self.expand(motion.flatten(0, 1)[..., None, None])) - 0.5
        return x + x * gate


class TEABlock(nn.Module):
    """Residual block of TEA: a bottleneck of four splits, each with the output of the one before, and of frames.

    (B T, C, H, W) and T give (B T, 4 planes, H/stride, W/stride).

    Args:
        in_channels: channels of the input.
        planes: the output has ``4 planes`` channels.
        split_width: channels of each split.
        stride: of the 3x3 convolutions.
        first: the first block of a stage. Its splits are computed from the input alone, the last is averaged over 3x3
            positions with the stride, and a 1x1 convolution leads around the block.
    """

    def __init__(self, in_channels: int, planes: int, split_width: int, stride: int = 1, first: bool = False) -> None:
        super().__init__()
        width, out_channels = SPLITS * split_width, EXPANSION * planes
        self.first = first
        self.enter = nn.Sequential(conv1x1(in_channels, width), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.excitation = MotionExcitation(width)
        self.temporal = nn.ModuleList(TemporalConvolution(split_width) for _ in range(SPLITS - 1))
        self.spatial = nn.ModuleList(
            nn.Sequential(conv3x3(split_width, split_width, stride), nn.BatchNorm2d(split_width), nn.ReLU(inplace=True))
            for _ in range(SPLITS - 1)
        )
        self.shift = TemporalConvolution(split_width, "shift")
        self.average = nn.AvgPool2d(3, stride, padding=1) if first else nn.Identity()
        self.leave = nn.Sequential(conv1x1(width, out_channels), nn.BatchNorm2d(out_channels))
        self.shortcut = (
            nn.Sequential(conv1x1(in_channels, out_channels, stride), nn.BatchNorm2d(out_channels))
            if first
            else nn.Identity()
        )

    def forward(self, x: Tensor, frames: int) -> Tensor:
        *splits, last = self.excitation(self.enter(x), frames).chunk(SPLITS, 1)
        done: list[Tensor] = []
        for split, temporal, spatial in zip(splits, self.temporal, self.spatial, strict=True):
            mixed = split if self.first or not done else split + done[-1]
            done.append(spatial(temporal(mixed, frames)))
        done.append(self.average(self.shift(last, frames)))
        return functional.relu(self.leave(torch.cat(done, 1)) + self.shortcut(x))
