"""Second-order vision transformers."""

import inspect

import pytest
import torch
from torch import nn

import matroot
from matroot.models import so_vit
from matroot.models.so_vit_head import ClassTokenHead, LearnedPowerPool
from matroot.nn import CovariancePool, SecondOrderHead

SIZES = {7: (256, 2, 48), 10: (256, 2, 48), 14: (384, 3, 64), 19: (448, 3, 64)}
"""Depth -> width, ratio of the hidden layer, width in the covariance."""


def small(num_classes=4, preset="default", **options):
    """Two blocks of one head, 4 x 4 tokens."""
    torch.manual_seed(0)
    reduced = {"image_size": 16, "patch": 4, "width": 64, "depth": 2, "stem_width": 8, "reduce_to": 8}
    return so_vit.so_vit_7(num_classes, preset, **reduced | options)


def images(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def classification_loss(model, x, classes=4):
    return nn.functional.cross_entropy(model(x), torch.arange(len(x)) % classes)


# --- sizes of the paper ---------------------------------------------------------------------------


def published_parameters(depth):
    """From the description: weights of all layers, two numbers a channel for each norm."""
    d, ratio, n = SIZES[depth]
    stem = 3 * 64 * 9 + 64 + 256 * d + d
    for channels in (64, 256, 256):
        bottleneck = channels * 64 + 64 * 64 * 9 + 64 * 256
        stem += bottleneck + channels * 256 + 2 * (64 + 64 + 256 + 256)
    attention = 3 * d * d + d * d + d
    mlp = d * ratio * d + ratio * d + ratio * d * d + d
    encoder = depth * (attention + mlp + 4 * d) + 2 * d
    head = d * n + 2 * n + 1000 * (d + 1) + 1000 * (n * (n + 1) // 2 + 1)
    return stem + d + encoder + head


@pytest.mark.parametrize(("depth", "expected"), [(7, 5_546_992), (10, 7_126_000), (14, 23_632_464), (19, 41_235_344)])
def test_parameters(depth, expected):
    with torch.device("meta"):
        model = getattr(so_vit, f"so_vit_{depth}")()
    assert sum(p.numel() for p in model.parameters()) == published_parameters(depth) == expected
    assert model.encoder[0].attention.qkv.bias is None
    features = model.forward_features(torch.empty(2, 3, 224, 224, device="meta"))
    assert features.shape == (2, 197, SIZES[depth][0])
    assert model.head.second_order.in_features == {48: 1176, 64: 2080}[SIZES[depth][2]]


def test_stem_of_the_paper():
    with torch.device("meta"):
        tokens = so_vit.so_vit_7().tokens
    assert [block.conv2.stride for block in tokens.blocks] == [(2, 2)] * 3
    norm = tokens.blocks[1].downsample[1]
    assert (norm.eps, norm.momentum) == (1e-3, 0.01)
    assert isinstance(tokens.pool, nn.MaxPool2d)


# --- tokens and positions -------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "patch", "side"), [(224, 16, 14), (128, 16, 8), (64, 8, 8), (32, 4, 8), (8, 1, 8)])
def test_small_images_have_8_tokens_a_side(size, patch, side):
    model = small(image_size=size, patch=None)
    assert model.tokens.patch == patch
    assert model.tokens(images(1, 3, size, size)).shape == (1, side**2, 64)


def test_small_patches_halve_late():
    """What is nearest to the image keeps its size first."""
    for patch, strides in ((16, [2, 2, 2]), (8, [2, 2, 2]), (4, [1, 2, 2]), (2, [1, 1, 2]), (1, [1, 1, 1])):
        tokens = small(patch=patch).tokens
        assert isinstance(tokens.pool, nn.MaxPool2d) == (patch == 16)
        assert [block.conv2.stride[0] for block in tokens.blocks] == strides


@pytest.mark.parametrize("patch", [1, 2, 4, 8, 16])
def test_positions_fit_any_image_size(patch):
    """Also one that is no multiple of the patch."""
    for size in (16, 19):
        assert small(image_size=size, patch=patch).eval()(images(2, 3, size, size)).shape == (2, 4)


def test_tokens_go_row_by_row():
    """A change in the corner at the upper right reaches the end of the first row, and no token of the last."""
    tokens, x = small(image_size=32, patch=16).tokens.eval(), torch.zeros(1, 3, 64, 64)
    changed = x.clone()
    changed[..., 0, -1] = 9
    differs = (tokens(changed) - tokens(x)).abs().amax(-1)[0].unflatten(0, (4, 4)) > 0
    assert differs[0, 3]
    assert not differs[3].any()
    assert not differs[:, 0].any()


def test_positions_are_sinusoids():
    """p/10000^(2 floor(i/2)/width), sine and cosine in turns; float32 rounding."""
    found = so_vit.sinusoidal_positions(5, 6)
    for p in range(5):
        for i in range(6):
            angle = torch.tensor(p / 10000 ** (2 * (i // 2) / 6), dtype=torch.float64)
            expected = angle.cos() if i % 2 else angle.sin()
            assert abs(found[p, i].item() - expected.item()) < 1e-7


def test_positions_are_no_weights():
    """They follow from the image size, so weights of one size fit another."""
    model = small(image_size=16)
    assert not any("positions" in name for name in model.state_dict())
    small(image_size=32).load_state_dict(model.state_dict())


@pytest.mark.parametrize("assign", [False, True])
def test_positions_are_there_after_the_meta_device(assign):
    model, x = small().eval(), images(2, 3, 16, 16)
    with torch.device("meta"):
        again = small()
    if not assign:
        again.to_empty(device="cpu").positions.fill_(float("nan"))
    again.load_state_dict(model.state_dict(), assign=assign)
    assert torch.equal(again.eval()(x), model(x))


def test_export_with_any_batch():
    model, dims = small(method="newton-schulz").eval(), {0: torch.export.Dim("batch", min=2)}
    exported = torch.export.export(model, (images(4, 3, 16, 16),), dynamic_shapes=(dims,)).module()
    for batch in (2, 5):
        x = images(batch, 3, 16, 16)
        torch.testing.assert_close(exported(x), model(x), rtol=1e-4, atol=1e-4)


def test_positions_are_added_to_the_class_token_first():
    model, x = small(depth=1).eval(), images(2, 3, 16, 16)
    model.encoder, model.norm = nn.Identity(), nn.Identity()
    found = model.forward_features(x)
    torch.testing.assert_close(found[:, 0], (model.class_token + model.positions[0]).expand(2, -1))
    torch.testing.assert_close(found[:, 1:], model.tokens(x) + model.positions[1:])


# --- encoder --------------------------------------------------------------------------------------


def test_block_is_its_formula():
    """Head by head, in float64: another order of summation."""
    block = small(width=128).double().encoder[0]
    x = images(2, 5, 128).double()
    y = block.norm1(x)
    heads = []
    for head in range(2):
        q, k, v = (y @ block.attention.qkv.weight[i * 128 + head * 64 :][:64].T for i in range(3))
        heads.append(torch.softmax(q @ k.mT / 8, -1) @ v)
    x1 = x + block.attention.projection(torch.cat(heads, -1))
    first, _, second = block.mlp
    z = first(block.norm2(x1))
    expected = x1 + second(z * (1 + torch.erf(z / 2**0.5)) / 2)
    torch.testing.assert_close(block.eval()(x), expected, rtol=1e-10, atol=1e-10)


def test_drop_path_grows_linearly():
    rates = [block.drop_path.p for block in small(depth=5, drop_path=0.2).encoder]
    assert rates == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert [block.drop_path.p for block in small(depth=1).encoder] == [0]


def test_drop_path_keeps_the_expectation():
    """Images skip a branch, or take it with the weight 1/(1 - p)."""
    torch.manual_seed(0)
    block = small(depth=2, drop_path=0.3).encoder[1]
    with torch.no_grad():
        block.mlp[2].weight.zero_()
        x = images(1, 3, 64)
        branch = block.eval()(x) - x
        several = block.train()(x.expand(4000, -1, -1)) - x
    weight = (several * branch).sum((1, 2)) / branch.square().sum()
    taken = weight > 0.5
    torch.testing.assert_close(weight[taken], torch.full_like(weight[taken], 1 / 0.7), rtol=1e-4, atol=0)
    assert weight[~taken].abs().max() < 1e-4
    # 4000 draws of deviation sqrt(0.3/0.7) have a mean of deviation 0.01; four of them
    assert abs(weight.mean().item() - 1) < 0.04


# --- head -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["default", "pi"])
def test_covariance_does_not_see_the_order_of_tokens(preset):
    """In float64, to rounding; the class token is another matter."""
    model = small(preset=preset).double().eval()
    tokens = model.forward_features(images(3, 3, 16, 16).double())
    order = 1 + torch.randperm(16, generator=torch.Generator().manual_seed(0))
    shuffled = tokens[:, torch.cat([torch.tensor([0]), order])]
    # Singular covariances: their roots lose half the digits.
    torch.testing.assert_close(model.forward_head(shuffled), model.forward_head(tokens), rtol=1e-6, atol=1e-6)
    assert (model.forward_head(tokens.roll(1, 1)) - model.forward_head(tokens)).abs().max() > 1e-4


def test_baseline_sees_the_class_token_alone():
    model = small(preset="baseline").eval()
    assert isinstance(model.head, ClassTokenHead)
    tokens = model.forward_features(images(2, 3, 16, 16))
    torch.testing.assert_close(model.forward_head(tokens), model.head.first_order(tokens[:, 0]))


# --- presets, training ----------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["default", *matroot.presets(), "baseline"])
def test_every_preset_trains(preset):
    """All parameters have finite gradients, and almost all of them one that is not zero."""
    model = small(preset=preset)
    classification_loss(model, images(4, 3, 16, 16)).backward()
    gradients = [p.grad for p in model.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)
    assert sum(bool(g.any()) for g in gradients) > 0.9 * len(gradients)


def test_presets_reach_the_head():
    assert type(small(preset="ns").head.pool) is CovariancePool
    assert small(preset="ns").head.pool.method == matroot.preset("ns")["method"]
    assert small(method=matroot.Pade(degree=3), gradient="exact").head.pool.gradient == "exact"
    assert isinstance(small(preset="pi").head.pool, LearnedPowerPool)
    with pytest.raises(ValueError, match="'pi' has a method and gradient of its own"):
        small(preset="pi", method="pade")


def test_learned_vector_is_a_network_of_its_own():
    small(preset="ns").require_preset("svd")
    small(preset="pi").require_preset("pi")
    with pytest.raises(ValueError, match="build it with preset='pi'"):
        small(preset="ns").require_preset("pi")
    with pytest.raises(ValueError, match="build it with preset='svd'"):
        small(preset="pi").require_preset("svd")


@pytest.mark.parametrize("preset", ["default", "pi"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_roots_are_float32_inside_autocast(dtype, preset, monkeypatch):
    model = small(preset=preset)
    pool, seen = type(model.head.pool), []
    original = pool.pool_covariance

    def spy(self, covariance, result):
        seen.append(covariance.dtype)
        return original(self, covariance, result)

    monkeypatch.setattr(pool, "pool_covariance", spy)
    with torch.autocast("cpu", dtype):
        loss = classification_loss(model, images(4, 3, 16, 16))
    loss.backward()
    assert seen == [torch.float32]
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("preset", ["default", "pi", "baseline"])
def test_classifier_can_be_replaced(preset):
    """The linear maps alone: all else is kept."""
    model = small(preset=preset).double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.reset_classifier(7)
    assert model.num_classes == model.head.num_classes == 7
    assert model.get_classifier() is model.head
    assert model(images(2, 3, 16, 16).double()).shape == (2, 7)
    changed = {name for name, value in model.state_dict().items() if value.shape != before[name].shape}
    linear = {"head.first_order"} | ({"head.second_order"} if preset != "baseline" else set())
    assert changed == {f"{name}.{part}" for name in linear for part in ("weight", "bias")}


def test_arguments():
    """What a network is made from; the options can be read from the signature."""
    assert small(preset="ns", image_size=32).arguments["image_size"] == 32
    assert so_vit.so_vit_14.__name__ == "so_vit_14"
    options = inspect.signature(so_vit.so_vit_14).parameters
    assert options["width"].default == 384
    assert {"image_size", "drop_path", "in_channels"} <= options.keys()
    assert small(in_channels=1)(images(2, 1, 16, 16)).shape == (2, 4)
    assert isinstance(small().head, SecondOrderHead)


def test_refuses():
    with pytest.raises(ValueError, match=r"16 x 16 pixels, got shape \(2, 3, 16, 20\)"):
        small()(torch.zeros(2, 3, 16, 20))
    with pytest.raises(ValueError, match="num_classes must be 1 or more, got 0"):
        small(0)
    with pytest.raises(ValueError, match="num_classes must be 1 or more, got 0"):
        small().reset_classifier(0)
    with pytest.raises(ValueError, match="patch must be one of 1, 2, 4, 8, 16; got 3"):
        small(patch=3)
    with pytest.raises(ValueError, match="baseline"):
        small(preset="baseline", method="pade")
    with pytest.raises(ValueError, match="width must be a multiple of 64, the width of a head; got 96"):
        small(width=96)


def test_learns_32_images_by_heart():
    """Noise has nothing else to be told apart by. Norms with a momentum of 0.01 are slow to see what there is, so their
    statistics are taken anew at the end."""
    model, x, labels = small(reduce_to=16, stem_width=16), images(32, 3, 16, 16), torch.arange(32) % 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(60):
        optimizer.zero_grad()
        classification_loss(model, x).backward()
        optimizer.step()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None
    with torch.no_grad():
        model(x)
        assert (model.eval()(x).argmax(1) == labels).float().mean() > 0.95
