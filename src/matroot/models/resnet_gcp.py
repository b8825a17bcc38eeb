"""ResNets with global covariance pooling (GCP)."""

from typing import Literal

from ..gradients import Gradient
from ..methods import Method
from ..nn import CovariancePool
from ._arguments import recorded
from ._presets import is_baseline, root_options
from .resnet import RESNET18, RESNET50, Depth, ResNet

SMALL = 96
"""Images of fewer pixels a side get the stem that keeps their size: the other leaves 32x32 images four positions."""


@recorded
def resnet50_gcp(
    num_classes: int = 1000,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    in_channels: int = 3,
    image_size: int = 224,
    last_stride: Literal[1, 2] = 1,
    width: int = 64,
    reduce_to: int = 256,
) -> ResNet:
    """ResNet-50 whose classifier sees the root of the covariance of its channels; 56.9 M parameters for 1000 classes.

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        preset: how the root is computed, see :func:`matroot.models.create`. ``baseline`` has the average over positions
            in the place of reduction, covariance and root.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the images.
        image_size: of the images it is meant for, which chooses the stem: under 96 pixels the 3x3 one of small images.
            Images of other sizes are no error.
        last_stride: of the last stage. For 224x224 images 1 gives covariances of 14x14 positions, 2 of 7x7.
        width: channels of the stem; the published 64, or fewer for tests.
        reduce_to: channels of the covariance, of which the classifier sees reduce_to (reduce_to + 1)/2 numbers.

    Returns:
        The network, which takes images (B, in_channels, H, W) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset, a baseline with a method or gradient, and values that do not fit.

    Example:
        >>> from matroot.models import resnet50_gcp
        >>> resnet50_gcp(width=8, reduce_to=16)(torch.randn(2, 3, 64, 64)).shape
        torch.Size([2, 1000])
    """
    return _pooled(
        RESNET50, num_classes, preset, method, gradient, in_channels, image_size, last_stride, width, reduce_to
    )


@recorded
def resnet18_gcp(
    num_classes: int = 100,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    *,
    in_channels: int = 3,
    image_size: int = 32,
    last_stride: Literal[1, 2] = 1,
    width: int = 64,
    reduce_to: int = 128,
) -> ResNet:
    """ResNet-18 with covariance pooling, for small images; 12.1 M parameters for 100 classes. Not in the paper.

    32x32 images give covariances of 8x8 positions.

    Args:
        num_classes: number of logits; 0 leaves the classifier out.
        preset: how the root is computed, see :func:`matroot.models.create`. ``baseline`` has the average over positions
            in the place of reduction, covariance and root.
        method: in the place of the preset's.
        gradient: in the place of the preset's.
        in_channels: channels of the images.
        image_size: of the images it is meant for, see :func:`resnet50_gcp`.
        last_stride: of the last stage.
        width: channels of the stem, 64, or fewer for tests.
        reduce_to: channels of the covariance, of which the classifier sees reduce_to (reduce_to + 1)/2 numbers.

    Returns:
        The network, which takes images (B, in_channels, H, W) to (B, num_classes).

    Raises:
        ValueError: for an unknown preset, a baseline with a method or gradient, and values that do not fit.

    Example:
        >>> from matroot.models import resnet18_gcp
        >>> resnet18_gcp(width=8, reduce_to=16)(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 100])
    """
    return _pooled(
        RESNET18, num_classes, preset, method, gradient, in_channels, image_size, last_stride, width, reduce_to
    )


def _pooled(
    depth: Depth,
    num_classes: int,
    preset: str,
    method: str | Method | None,
    gradient: str | Gradient | None,
    in_channels: int,
    image_size: int,
    last_stride: int,
    width: int,
    reduce_to: int,
) -> ResNet:
    options = root_options(preset, method, gradient)
    pool = None if is_baseline(preset) else CovariancePool(depth.out_channels(width), reduce_to, **options)
    small_images = image_size < SMALL
    return ResNet(depth, num_classes, in_channels, width, small_images, last_stride=last_stride, pool=pool)
