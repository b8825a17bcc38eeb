"""Residual networks of torchvision's blocks, with any first norm and any pooling."""

from dataclasses import dataclass

from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck, conv1x1

from ..nn import CovariancePool


@dataclass(frozen=True)
class Depth:
    """Kind and number of the blocks of the four stages."""

    block: type[BasicBlock] | type[Bottleneck]
    blocks: tuple[int, int, int, int]

    def out_channels(self, width: int) -> int:
        """Channels after the last stage of a network whose stem has ``width``."""
        return 8 * width * self.block.expansion


RESNET18 = Depth(BasicBlock, (2, 2, 2, 2))
RESNET50 = Depth(Bottleneck, (3, 4, 6, 3))


class ResNet(nn.Module):
    """Stem, four stages, pooling, linear classifier.

    Images (B, in_channels, H, W) give (B, num_classes). Parameters have torchvision's names where it has such a layer.

    Args:
        depth: the blocks; a bottleneck has its stride in the 3x3 convolution.
        num_classes: number of logits; 0: the network returns what it pools.
        in_channels: channels of the images.
        width: channels of the stem; stages have 1, 2, 4 and 8 times as many, a bottleneck's output 4 times that.
        small_images: a stem that keeps the size of images, 3x3; otherwise 7x7 of stride 2 and max-pooling.
        last_stride: of the last stage.
        norm: after the first convolution; None: batch normalisation.
        pool: None: the average of all positions.

    Raises:
        ValueError: if ``last_stride`` is not 1 or 2, or ``num_classes`` is negative.
    """

    def __init__(
        self,
        depth: Depth,
        num_classes: int,
        in_channels: int = 3,
        width: int = 64,
        small_images: bool = False,
        last_stride: int = 2,
        norm: nn.Module | None = None,
        pool: CovariancePool | None = None,
    ) -> None:
        super().__init__()
        if last_stride not in (1, 2):
            raise ValueError(f"last_stride must be 1 or 2, got {last_stride!r}")
        kernel, stride = (3, 1) if small_images else (7, 2)
        self.conv1 = nn.Conv2d(in_channels, width, kernel, stride, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width) if norm is None else norm
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, stride=2, padding=1)
        expansion = depth.block.expansion
        inputs = (width, width * expansion, 2 * width * expansion, 4 * width * expansion)
        self.layer1 = _stage(depth.block, depth.blocks[0], inputs[0], width, stride=1)
        self.layer2 = _stage(depth.block, depth.blocks[1], inputs[1], 2 * width, stride=2)
        self.layer3 = _stage(depth.block, depth.blocks[2], inputs[2], 4 * width, stride=2)
        self.layer4 = _stage(depth.block, depth.blocks[3], inputs[3], 8 * width, stride=last_stride)
        channels = depth.out_channels(width)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()) if pool is None else pool
        self.num_features = channels
        """Channels of ``forward_features``."""
        self.head_hidden_size = channels if pool is None else pool.out_features
        """Features that the classifier sees."""
        self.reset_classifier(num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def get_classifier(self) -> nn.Module:
        """The linear layer that gives the logits."""
        return self.fc

    def reset_classifier(self, num_classes: int) -> None:
        """A new classifier, where the old one was; ``num_classes=0`` has none."""
        if num_classes < 0:
            raise ValueError(f"num_classes must be 0 or more, got {num_classes}")
        self.num_classes = num_classes
        like = self.conv1.weight
        self.fc = nn.Identity()
        if num_classes:
            self.fc = nn.Linear(self.head_hidden_size, num_classes, device=like.device, dtype=like.dtype)

    def forward_features(self, x: Tensor) -> Tensor:
        """Feature maps (B, num_features, h, w) of images."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Logits from feature maps; ``pre_logits`` returns what the classifier would see, (B, head_hidden_size)."""
        x = self.pool(x)
        return x if pre_logits else self.fc(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


def _stage(
    block: type[BasicBlock] | type[Bottleneck], count: int, channels: int, planes: int, stride: int
) -> nn.Sequential:
    """``count`` blocks; the first has the stride, and a projection as its shortcut where the shape changes."""
    out = planes * block.expansion
    shortcut = None
    if stride != 1 or channels != out:
        shortcut = nn.Sequential(conv1x1(channels, out, stride), nn.BatchNorm2d(out))
    return nn.Sequential(block(channels, planes, stride, shortcut), *(block(out, planes) for _ in range(count - 1)))
