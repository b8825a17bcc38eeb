"""TEA-ResNet-50 with temporal-attentive covariance pooling."""

import math

import pytest
import torch
from torch import nn

import matroot
from matroot.models.tea import tea50_tcp
from matroot.nn import CovariancePool, TemporalCovariancePool


def small(num_classes=4, preset="default", seed=0, **options):
    """An eighth of the width, with a block of each kind."""
    torch.manual_seed(seed)
    return tea50_tcp(num_classes, preset, **{"width": 8, "depths": (1, 1, 2, 1), "reduce_to": (16, 8)} | options)


def clips(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def published_backbone():
    """Weights of TEA's convolutions and two numbers a channel for each norm, from its description."""
    count = 3 * 64 * 49 + 2 * 64
    channels = 64
    for planes, depth in zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True):
        w, out = math.floor(planes * 26 / 64), 4 * planes
        c = 4 * w
        r = c // 16
        for i in range(depth):
            count += channels * c + 2 * c  # 1x1
            count += (c * r + 2 * r) + 9 * r + (r * c + 2 * c)  # motion excitation
            count += 3 * (9 * w * w + 2 * w) + 4 * 3 * w  # 3x3, and convolutions in time
            count += c * out + 2 * out  # 1x1
            if i == 0:
                count += channels * out + 2 * out  # shortcut
            channels = out
    return count


@pytest.fixture(scope="module")
def published():
    with torch.device("meta"):
        return tea50_tcp()


def parameters(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def test_parameters_of_the_backbone(published):
    """24.1 million; the 26.1 million of the publication have a classifier of ImageNet's 1000 classes with them."""
    found = parameters(published.stem, published.stages)
    assert found == published_backbone() == 24_099_754
    assert round((found + 2048 * 1000 + 1000) / 1e6, 1) == 26.1


def test_parameters_of_the_head(published):
    reduction = 2048 * 256 + 2 * 256 + 256 * 128 + 2 * 128
    attention = 3 * (128**2 + 128) + 2 * 128 + (128 * 512 + 512) + (512 * 128 + 128) + (5 * 128**2 + 128)
    assert parameters(published.pool) == reduction + attention
    assert published.classifier.in_features == 8256
    assert parameters(published.classifier) == 8256 * 51 + 51
    assert published.dropout.p == 0.5


def test_shapes_of_the_paper(published):
    """8 frames of 224 x 224 pixels give 2048 x 14 x 14 each."""
    video = torch.empty(2, 8, 3, 224, 224, device="meta")
    features = published.forward_features(video)
    assert features.shape == (2, 8, 2048, 14, 14)
    assert published.pool.reduce(features.flatten(0, 1)).shape == (16, 128, 14, 14)


def test_starts_as_published():
    """Kaiming for convolutions in space; the attention of the head starts at zero."""
    torch.manual_seed(0)
    model = tea50_tcp(4, depths=(1, 1, 1, 1))
    for convolution in (model.stem[0], model.stages[2][0].spatial[0][0], model.pool.reduce[0][0]):
        fan_out = convolution.weight[:, 0].numel()
        # of 10,000 numbers and more, the deviation is known to 2 %
        assert convolution.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.04)
    assert not model.pool.attention.norm.weight.any()
    assert not model.pool.attention.temporal.weight.any()
    for stage in model.stages:
        for layer in stage[0].temporal:
            assert torch.equal(layer.weight, torch.tensor([0.0, 1.0, 0.0]).expand_as(layer.weight))


def train_step(model, x, classes=4):
    """The loss of one step, whose gradients are left with the parameters."""
    labels = torch.arange(len(x)) % classes
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    return loss.detach()


def assert_learns(model):
    """All gradients are there and finite, and most parameters have one that is not zero."""
    gradients = [p.grad for p in model.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)
    assert sum(bool(g.any()) for g in gradients) > 0.8 * len(gradients)


@pytest.mark.parametrize(
    ("preset", "pool"),
    [*((name, "video") for name in ("default", *matroot.presets(), "baseline")), ("default", "window")],
)
def test_every_preset_trains(preset, pool):
    model = small(preset=preset, pool=pool)
    train_step(model, clips(2, 3, 3, 32, 32))
    assert_learns(model)


def test_method_and_gradient_replace_those_of_the_preset():
    pool = small(preset="mpa-lya", method=matroot.Pade(degree=3), gradient="exact").pool.covariance
    assert (pool.method, pool.gradient) == (matroot.Pade(degree=3), "exact")
    assert small(preset="ns").pool.covariance.method == matroot.preset("ns")["method"]


def test_pools():
    assert isinstance(small().pool.covariance, CovariancePool)
    assert isinstance(small(pool="window").pool.covariance, TemporalCovariancePool)


def test_baseline_has_no_method():
    with pytest.raises(ValueError, match="baseline"):
        small(preset="baseline", method="pade")


@pytest.mark.parametrize("preset", ["default", "baseline"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "frames"}, "unknown pool 'frames'; valid names are video, window"),
        ({"reduce_to": ()}, "reduce_to must have one number of channels at least"),
        ({"num_classes": -1}, "num_classes must be 0 or more, got -1"),
    ],
)
def test_values_that_do_not_fit(preset, options, message):
    with pytest.raises(ValueError, match=message):
        small(**{"preset": preset, **options})


def test_baseline_is_the_mean_over_frames_and_positions():
    model, x = small(preset="baseline").eval(), clips(2, 3, 3, 32, 32)
    expected = model.classifier(model.forward_features(x).mean((1, 3, 4)))
    torch.testing.assert_close(model(x), expected)


def test_one_covariance_per_video():
    """Of all frames and positions; the attention keeps what is before it, so this is all the head adds."""
    model, x = small().double().eval(), clips(2, 3, 3, 32, 32).double()
    features = model.forward_features(x)
    reduced = model.pool.reduce(features.flatten(0, 1)).unflatten(0, (2, 3)).transpose(1, 2)
    X = model.pool.attention(reduced).flatten(2)
    S = matroot.sqrtm(torch.stack([torch.cov(one, correction=0) for one in X]), "eigen")
    pooled = S[:, *torch.triu_indices(8, 8)]
    # a covariance of 12 positions, some channels of which are near zero: roots lose half the digits there
    torch.testing.assert_close(model.forward_head(features, pre_logits=True), pooled, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(model(x), model.classifier(pooled), rtol=1e-6, atol=1e-6)


def test_clips_do_not_mix():
    """In evaluation, a clip among others is classified as alone, whatever the number of frames."""
    model = small().eval()
    for frames in (1, 5):
        x = clips(3, frames, 3, 32, 32)
        alone = torch.cat([model(clip[None]) for clip in x])
        # float32 convolutions of another batch size
        torch.testing.assert_close(model(x), alone, rtol=1e-3, atol=1e-4)


def test_order_of_frames_counts():
    model, x = small().eval(), clips(1, 4, 3, 32, 32)
    assert (model(x) - model(x.flip(1))).abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_roots_are_float32_inside_autocast(dtype):
    model, x = small(), clips(2, 3, 3, 32, 32)
    seen = []
    pool = model.pool.covariance
    pool.pool_covariance = lambda covariance, result: (
        seen.append(covariance.dtype),
        type(pool).pool_covariance(pool, covariance, result),
    )[1]
    with torch.autocast("cpu", dtype):
        loss = train_step(model, x)
    assert loss.isfinite()
    assert seen == [torch.float32]
    assert_learns(model)


def test_classifier_can_be_replaced():
    model = small().double()
    old = model.get_classifier()
    model.reset_classifier(7)
    assert model.num_classes == 7
    assert model.get_classifier() is not old
    assert model(clips(2, 3, 3, 32, 32).double()).shape == (2, 7)


def test_without_classifier():
    model, x = small(), clips(2, 3, 3, 32, 32)
    model.reset_classifier(0)
    for headless in (model, small(0)):
        assert headless(x).shape == (2, 36)
    model.reset_classifier(5)
    assert model(x).shape == (2, 5)


def test_arguments_are_recorded():
    assert small(preset="ns").arguments["reduce_to"] == [16, 8]
    assert small(preset="ns").arguments["name"] == "tea50_tcp"


def test_other_channels():
    assert small(in_channels=1)(clips(2, 3, 1, 32, 32)).shape == (2, 4)


@pytest.mark.parametrize("shape", [(2, 3, 32, 32), (2, 3, 4, 32, 32)])
def test_refuses_other_clips(shape):
    with pytest.raises(ValueError, match=r"clips must be \(B, T, 3, H, W\), got shape \(2, 3"):
        small()(torch.zeros(shape))


def test_learns_32_clips_by_heart():
    """Noise has nothing else to be told apart by. Within four times the usual steps: they depend on rounding."""
    model, x, labels = small(reduce_to=(32, 16)), clips(32, 2, 3, 32, 32), torch.arange(32) % 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  # at 1e-2 some are lost again
    learned = 0.0
    for step in range(4 * 40):
        train_step(model.train(), x)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 40 == 0:
            with torch.no_grad():
                learned = float((model.eval()(x).argmax(1) == labels).float().mean())
            if learned > 0.95:
                break
    assert learned > 0.95
