"""Losses against their formulas, written out, and what they do not see."""

import pytest
import torch

from matroot.style.distillation.losses import (
    EPS,
    content_distance,
    feature_distance,
    style_distance,
    total_variation,
)

# Sums of a few hundred float32 numbers in another order.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def features(*shape, seed=0, scale=2.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).relu()


def test_content_is_the_correlation_of_channels_weighted_by_variance():
    x, y = features(2, 3, 6, 7), features(2, 3, 6, 7, seed=1) * torch.tensor([1.0, 0.1, 3.0])[:, None, None]
    expected = []
    for image, target in zip(x, y, strict=True):
        weights = target.flatten(1).var(1, correction=0)
        distances = [
            2 - 2 * torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]
            for a, b in zip(image, target, strict=True)
        ]
        expected.append((weights * torch.stack(distances)).sum() / weights.sum())
    # EPS beside variances of 0.005 and more: a relative error of 2e-3 in the smallest, with a weight below 1 %.
    torch.testing.assert_close(content_distance(x, y), torch.stack(expected).mean(), rtol=1e-3, atol=0)


def test_content_sees_neither_means_nor_variances():
    x = features(2, 4, 8, 8)
    changed = x * torch.tensor([0.5, 1.0, 2.0, 4.0])[:, None, None] + 3
    # Variances are about 1.4: EPS changes correlations by EPS/(0.25 * 1.4).
    assert content_distance(changed, x) < 1e-4
    assert 1.5 < content_distance(features(2, 4, 8, 8, seed=1), x) < 2.5


def test_style_is_the_difference_of_statistics():
    x, y = [features(2, 3, 5, 6), features(2, 4, 3, 3)], [features(2, 3, 7, 4, seed=1), features(2, 4, 4, 4, seed=2)]
    expected = torch.zeros(2)
    for k in range(2):
        scales = []
        for image, target in zip(x[k], y[k], strict=True):
            A, B = image.flatten(1), target.flatten(1)
            C, T = (torch.cov(M, correction=0) + EPS * torch.eye(len(M)) for M in (A, B))
            moments = (A.mean(1) - B.mean(1)).square().mean() + (C.diag().sqrt() - T.diag().sqrt()).square().mean()
            scales.append(moments + (C - T).square().sum() / (C.square().sum() + T.square().sum()))
        expected[k] = torch.stack(scales).mean()
    torch.testing.assert_close(style_distance(x, y), expected.mean(), **CLOSE)


def test_style_does_not_see_where_things_are():
    x = features(1, 4, 6, 6)
    moved = x.flatten(2)[..., torch.randperm(36)].unflatten(2, (6, 6))
    assert style_distance([moved], [x]) < 1e-10
    assert style_distance([2 * x], [x]) > 0.1


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_gradients_of_constant_pictures_are_finite(constant):
    """A black picture has features without variance."""
    x = torch.full((1, 3, 4, 4), constant, requires_grad=True)
    target = features(1, 3, 4, 4)
    (style_distance([x], [target]) + content_distance(x, target) + content_distance(target, x)).backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


def test_features_and_variation():
    x, y = features(2, 3, 4, 4), features(2, 3, 4, 4, seed=1)
    torch.testing.assert_close(feature_distance([x, x], [y, x]), (x - y).square().mean() / 2)
    ramp = torch.arange(4.0).expand(1, 1, 3, 4)
    assert total_variation(ramp) == 1
    assert total_variation(ramp.mT) == 1


def test_losses_are_computed_in_float32_inside_autocast():
    x, y = features(1, 8, 16, 16), features(1, 8, 16, 16, seed=1)
    outside = torch.stack([content_distance(x, y), style_distance([x], [y]), feature_distance([x], [y])])
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.stack([content_distance(x, y), style_distance([x], [y]), feature_distance([x], [y])])
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside, outside, **CLOSE)
