"""ResNets with a decorrelated layer."""

import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from matroot import models
from matroot.nn import DecorrelatedBatchNorm2d

from .networks import build, inputs


def parameters_of_basic_resnet(blocks, classes, channels=3):
    """Two 3x3 convolutions a block with two norms; a projection where the number of channels changes."""
    total = channels * 9 * 64 + 2 * 64
    before = 64
    for count, planes in zip(blocks, (64, 128, 256, 512), strict=True):
        for _ in range(count):
            total += 9 * before * planes + 9 * planes * planes + 4 * planes
            total += before * planes + 2 * planes if before != planes else 0
            before = planes
    return total + before * classes + classes


def parameters_of_bottleneck_stages(blocks):
    """1x1, 3x3 and 1x1 convolutions with their norms, and a projection in the first block of a stage."""
    total, before = 0, 64
    for count, planes in zip(blocks, (64, 128, 256, 512), strict=True):
        for _ in range(count):
            out = 4 * planes
            total += before * planes + 9 * planes * planes + planes * out + 2 * (planes + planes + out)
            total += before * out + 2 * out if before != out else 0
            before = out
    return total


def count(name, **options):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in models.create(name, **options).parameters())


@pytest.mark.parametrize("preset", ["default", "baseline"])
def test_numbers_of_parameters(preset):
    """Those of the paper: 11.17 and 23.7 million. A decorrelated layer has as many as batch normalisation."""
    expected = parameters_of_basic_resnet((2, 2, 2, 2), 10)
    assert count("resnet18_dbn", preset=preset) == expected
    assert f"{expected / 1e6:.2f}" == "11.17"
    expected = 3 * 9 * 64 + 2 * 64 + parameters_of_bottleneck_stages((3, 4, 6, 3)) + 2048 * 100 + 100
    assert count("resnet50_dbn", preset=preset) == expected
    assert f"{expected / 1e6:.1f}" == "23.7"
    assert count("resnet18_dbn", in_channels=1, num_classes=0) == parameters_of_basic_resnet((2, 2, 2, 2), 0, 1)


@pytest.mark.parametrize("name", ["resnet18_dbn", "resnet50_dbn"])
def test_one_norm_is_decorrelated_and_the_size_stays_until_the_stages(name):
    model = build(name, groups=2)
    decorrelated = [layer for layer in model.modules() if isinstance(layer, DecorrelatedBatchNorm2d)]
    assert decorrelated == [model.bn1]
    assert (model.bn1.groups, model.bn1.eps, model.bn1.momentum, model.bn1.track) == (2, 1e-2, 0.1, "whitening")
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in model.modules()) > 10
    sizes = []
    for layer in (model.maxpool, model.layer1, model.layer2, model.layer3, model.layer4):
        layer.register_forward_hook(lambda _, __, y: sizes.append(y.shape[-1]))
    model(torch.randn(2, 3, 32, 32))
    assert sizes == [32, 32, 16, 8, 4]


def test_strides_are_in_the_3x3_convolutions():
    model = build("resnet50_dbn")
    for stage in (model.layer2, model.layer3, model.layer4):
        assert (stage[0].conv1.stride, stage[0].conv2.stride) == ((1, 1), (2, 2))


def test_the_baseline_is_the_network_of_torchvision_with_another_stem():
    model, theirs = models.create("resnet18_dbn", 5, "baseline"), resnet18(num_classes=5)
    theirs.conv1, theirs.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    theirs.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 8, 8)
    assert torch.equal(model(x), theirs(x))


def test_the_stem_whitens_its_features():
    model, features = build("resnet18_dbn", eps=0.0), []
    model.bn1.register_forward_hook(lambda _, __, y: features.append(y.detach().clone()))
    model(inputs("resnet18_dbn", 16))
    rows = features[0].transpose(0, 1).flatten(1).double()
    # Rounding of float32, amplified by the condition number of the covariance, 100 or so.
    torch.testing.assert_close(torch.cov(rows, correction=0), torch.eye(8).double(), rtol=0, atol=1e-4)


def test_initial_weights():
    """Kaiming's: the deviation is sqrt(2/(outputs times positions of the kernel)). 0.1 is 10 sigma of the estimate."""
    torch.manual_seed(0)
    model = models.create("resnet18_dbn", published_init=True)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d) and layer.weight.numel() > 5000:
            fan_out = layer.out_channels * layer.kernel_size[0] * layer.kernel_size[1]
            assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.1)
    scale = model.bn1.weight
    assert scale.min() >= 0
    assert scale.max() <= 1
    # 64 numbers of deviation 12^(-1/2).
    assert scale.mean().item() == pytest.approx(0.5, abs=5 * 12**-0.5 / 8)
    assert scale.std() > 0.2
    assert torch.equal(build("resnet18_dbn").bn1.weight, torch.ones(8))


def test_grey_images():
    assert build("resnet18_dbn", in_channels=1)(torch.randn(4, 1, 8, 8)).shape == (4, 4)
