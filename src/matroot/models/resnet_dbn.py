"""ResNets for small images whose first norm decorrelates channels (DBN)."""

from torch import nn

from ..gradients import Gradient
from ..methods import Method
from ..nn import DecorrelatedBatchNorm2d
from ._arguments import recorded
from ._presets import is_baseline, root_options
from .resnet import RESNET18, RESNET50, ResNet

EPS = 1e-2
"""Of the published runs."""


@recorded
def resnet18_dbn(
    num_classes: int = 10,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    in_channels: int = 3,
    width: int = 64,
    groups: int = 1,
    eps: float = EPS,
    published_init: bool = False,
) -> ResNet:
    """ResNet-18 for 32x32 images with a decorrelated layer after the first convolution; 11.17 M parameters.

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        preset: how the inverse root is computed, see :func:`matroot.models.create`. ``baseline`` has batch
            normalisation in that place too.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the images.
        width: channels of the stem; the published 64, or fewer for tests.
        groups: of the decorrelated layer.
        eps: of the decorrelated layer.
        published_init: draw the scale of that layer from U(0, 1), as published, in the place of 1.

    Returns:
        The network, which takes images (B, in_channels, H, W) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset, a baseline with a method or gradient, and values that do not fit.

    Example:
        >>> from matroot.models import resnet18_dbn
        >>> resnet18_dbn(width=8)(torch.randn(4, 3, 32, 32)).shape
        torch.Size([4, 10])
    """
    norm = _first_norm(width, preset, method, gradient, groups, eps, published_init)
    return ResNet(RESNET18, num_classes, in_channels, width, small_images=True, norm=norm)


@recorded
def resnet50_dbn(
    num_classes: int = 100,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    in_channels: int = 3,
    width: int = 64,
    groups: int = 1,
    eps: float = EPS,
    published_init: bool = False,
) -> ResNet:
    """ResNet-50 for 32x32 images with a decorrelated layer after the first convolution; 23.7 M parameters.

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        preset: how the inverse root is computed, see :func:`matroot.models.create`. ``baseline`` has batch
            normalisation in that place too.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the images.
        width: channels of the stem; the published 64, or fewer for tests.
        groups: of the decorrelated layer.
        eps: of the decorrelated layer.
        published_init: draw the scale of that layer from U(0, 1), as published, in the place of 1.

    Returns:
        The network, which takes images (B, in_channels, H, W) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset, a baseline with a method or gradient, and values that do not fit.

    Example:
        >>> from matroot.models import resnet50_dbn
        >>> resnet50_dbn(width=8)(torch.randn(4, 3, 32, 32)).shape
        torch.Size([4, 100])
    """
    norm = _first_norm(width, preset, method, gradient, groups, eps, published_init)
    return ResNet(RESNET50, num_classes, in_channels, width, small_images=True, norm=norm)


def _first_norm(
    width: int,
    preset: str,
    method: str | Method | None,
    gradient: str | Gradient | None,
    groups: int,
    eps: float,
    published_init: bool,
) -> nn.Module:
    options = root_options(preset, method, gradient)
    if is_baseline(preset):
        return nn.BatchNorm2d(width)
    norm = DecorrelatedBatchNorm2d(width, groups, eps=eps, **options)
    norm.reset_parameters(uniform=published_init)
    return norm
