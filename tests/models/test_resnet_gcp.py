"""ResNet-50 with covariance pooling."""

import pytest
import torch
from torch import nn
from torchvision.models import resnet50

from matroot import models

from .networks import build, inputs
from .test_resnet_dbn import count, parameters_of_bottleneck_stages


def test_number_of_parameters():
    """The reduction to 256 channels and its norm, then a classifier of the 256 * 257/2 numbers of a triangle."""
    stem = 3 * 49 * 64 + 2 * 64
    body = stem + parameters_of_bottleneck_stages((3, 4, 6, 3))
    triangle = 256 * 257 // 2
    assert triangle == 32_896
    assert count("resnet50_gcp") == body + 2048 * 256 + 2 * 256 + triangle * 1000 + 1000
    assert count("resnet50_gcp", last_stride=2, num_classes=200) == body + 2048 * 256 + 512 + triangle * 200 + 200
    assert count("resnet50_gcp", preset="baseline") == body + 2048 * 1000 + 1000


def test_the_small_one_has_the_same_head():
    """In the place of a linear layer of 512 channels."""
    triangle = 128 * 129 // 2
    body = count("resnet18_gcp", preset="baseline") - (512 + 1) * 100
    assert count("resnet18_gcp") == body + 512 * 128 + 2 * 128 + (triangle + 1) * 100


@pytest.mark.parametrize(("last_stride", "positions"), [(1, 14), (2, 7)])
def test_positions_of_the_covariance(last_stride, positions):
    with torch.device("meta"):
        model = models.create("resnet50_gcp", last_stride=last_stride)
        assert model.forward_features(torch.empty(2, 3, 224, 224)).shape == (2, 2048, positions, positions)


@pytest.mark.parametrize(("image_size", "positions"), [(32, 8), (64, 16), (96, 6)])
def test_small_images_keep_their_size_in_the_stem(image_size, positions):
    with torch.device("meta"):
        model = models.create("resnet50_gcp", image_size=image_size)
        assert model.forward_features(torch.empty(2, 3, image_size, image_size)).shape[-1] == positions


def test_the_head_is_the_formula():
    """Centred covariance divided by N, root by eigendecomposition in float64, upper triangle row by row, linear."""
    model, x = build("resnet50_gcp").double().eval(), inputs("resnet50_gcp").double()
    convolution, norm, _ = model.pool.reduce
    with torch.no_grad():
        features = model.forward_features(x)
        reduced = torch.relu(norm(nn.functional.conv2d(features, convolution.weight))).flatten(2)
        logits = []
        for X in reduced:
            N = X.shape[1]
            centring = (torch.eye(N, dtype=X.dtype) - torch.full((N, N), 1 / N, dtype=X.dtype)) / N
            values, vectors = torch.linalg.eigh(X @ centring @ X.mT)
            root = vectors * values.clamp_min(0).sqrt() @ vectors.mT
            rows, columns = torch.triu_indices(24, 24)
            logits.append(model.fc(root[rows, columns]))
        # A root of eigenvalues that are zero up to rounding has an error of sqrt(eps), 1e-8 of the largest.
        torch.testing.assert_close(model(x), torch.stack(logits), rtol=1e-6, atol=1e-7)
        assert torch.equal(model.forward_head(features), model(x))
        assert model.forward_head(features, pre_logits=True).shape == (4, 300)


def test_the_baseline_is_the_network_of_torchvision():
    model = models.create("resnet50_gcp", preset="baseline", last_stride=2, num_classes=5)
    theirs = resnet50(num_classes=5)
    theirs.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 64, 64)
    assert torch.equal(model(x), theirs(x))


def test_the_reduction_is_initialised_as_all_convolutions_are():
    torch.manual_seed(0)
    weight = build("resnet50_gcp", width=16, reduce_to=64).pool.reduce[0].weight
    assert weight.std().item() == pytest.approx((2 / 64) ** 0.5, rel=0.05)


def test_without_a_classifier_it_returns_the_triangle():
    model = build("resnet50_gcp", num_classes=0)
    assert model(inputs("resnet50_gcp")).shape == (4, 300)
    assert not list(model.get_classifier().parameters())
