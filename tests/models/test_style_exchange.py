"""Style exchange: shapes, sizes, what its transforms compute, and what the published style code leaves of them."""

import sys

import pytest
import torch

import matroot
from matroot import models
from matroot.models.style_exchange import ALPHA, EPS, TRANSFORMS, StyleExchange, style_code
from matroot.nn import WhitenColor, covariance, whiten_color

from ..matrices import exact_inverse_root, exact_root


def small(preset="default", **options):
    torch.manual_seed(0)
    return models.style_exchange(preset, **{"width": 2, "blocks": 1, **options})


def images(count=2, side=32, seed=0):
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def convolution(before, after, kernel, bias=0):
    return before * after * kernel**2 + bias * after


def test_published_size():
    """Convolutions, the scale and shift of group norms, and a blend a transform, counted by hand."""
    with torch.device("meta"):
        network = models.style_exchange()
    block = 2 * convolution(256, 256, 3)
    stem = convolution(3, 64, 7) + convolution(64, 128, 4) + convolution(128, 256, 4)
    content = stem + 4 * block
    style = stem + 2 * convolution(256, 256, 4) + 2 * (64 + 128 + 3 * 256)
    upsampling = convolution(256, 128, 5) + convolution(128, 64, 5) + convolution(64, 3, 7, bias=1) + 2 * (128 + 64)
    decoder = 4 * (block + 2 * 256) + upsampling + TRANSFORMS
    for generator in (network.photo, network.painting):
        counted = [sum(p.numel() for p in part.parameters()) for part in generator.children()]
        assert counted == [content, style, decoder]
        assert sum(counted) == pytest.approx(14e6, rel=0.01)
    transforms = [layer for layer in network.modules() if isinstance(layer, WhitenColor)]
    assert len(transforms) == 2 * TRANSFORMS == 10
    assert {(layer.initial_alpha, layer.learnable, layer.eps) for layer in transforms} == {(ALPHA, True, EPS)}
    assert (ALPHA, EPS) == (0.6, 1e-5)


def test_published_shapes():
    """256 x 54 x 54 from 216 pixels, as published."""
    with torch.device("meta"):
        network, x = models.style_exchange(), torch.empty(1, 3, 216, 216)
        assert network.photo.content(x).shape == (1, 256, 54, 54)
        assert network.photo.style(x).shape == (1, 256, 13, 13)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (40, 36)])
def test_each_in_the_style_of_the_other(height, width):
    network = small()
    photos, paintings = images(2, 48)[:, :, :height, :width], images(2, 48, seed=1)
    painted, photographed = network(photos, paintings)
    assert painted.shape == photos.shape
    assert photographed.shape == paintings.shape
    assert max(painted.abs().max(), photographed.abs().max()) <= 1
    assert torch.equal(painted, network.to_paintings(photos, paintings))
    expected = network.photo.decode(network.painting.content(paintings), network.photo.style(photos))
    assert torch.equal(photographed, expected)


def test_sides_are_multiples_of_four():
    with pytest.raises(ValueError, match=r"multiples of 4, got \(1, 3, 32, 34\)"):
        small().photo.content(torch.zeros(1, 3, 32, 34))


def test_pictures_of_a_batch_are_separate():
    """So that batches can be joined for one decoder; the tolerance is rounding of float32 through some 20 layers."""
    network = small()
    photos, paintings = images(3), images(3, seed=1)
    together = network.to_paintings(photos, paintings)
    alone = torch.cat([network.to_paintings(photos[k : k + 1], paintings[k : k + 1]) for k in range(3)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-4)


def test_a_transform_is_the_published_formula():
    """alpha (S_s^(1/2) S_c^(-1/2) X + mean of style) + (1 - alpha) X, with X the deviations of the content."""
    decoder = small(blocks=0).double().painting.decoder
    content = torch.randn(2, 8, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 3
    style = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2 - 1
    found = []
    decoder.upsample.register_forward_hook(lambda layer, inputs, output: found.append(inputs[0]))
    decoder(content, style)
    X, Y = content.flatten(2), style.flatten(2)
    mean = Y.mean(-1, keepdim=True)
    X, Y = X - X.mean(-1, keepdim=True), Y - mean
    eye = EPS * torch.eye(8, dtype=torch.float64)
    color, whiten = exact_root(Y @ Y.mT / 24 + eye), exact_inverse_root(X @ X.mT / 35 + eye)
    alpha = decoder.transforms[0].alpha
    expected = alpha * (color @ whiten @ X + mean) + (1 - alpha) * X
    # condition numbers below a thousand in float64
    torch.testing.assert_close(found[0].flatten(2), expected, rtol=0, atol=1e-10)


def test_a_code_of_one_position_colours_nothing():
    """Its covariance is exactly eps I, whatever the painting: colouring is a multiplication by the root of eps."""
    generator = small(published_style_code=True).painting
    content = torch.randn(2, 8, 9, 9, generator=torch.Generator().manual_seed(0))
    for seed in range(3):
        style = generator.style(images(2, seed=seed))
        assert style.shape == (2, 8, 1, 1)
        assert torch.equal(covariance(style, correction=1, eps=EPS), EPS * torch.eye(8).expand(2, 8, 8))
        found = whiten_color(content, style, alpha=1.0, eps=EPS)
        X = (content - content.mean((2, 3), keepdim=True)).flatten(2)
        whitened = matroot.invsqrtm(X @ X.mT / 80 + EPS * torch.eye(8)) @ X
        torch.testing.assert_close(found.flatten(2), EPS**0.5 * whitened + style.flatten(2), rtol=0, atol=1e-6)


@pytest.mark.parametrize("published", [True, False])
def test_colours_of_a_painting_count_in_the_spatial_feature_alone(published, monkeypatch):
    """Two styles of one mean paint the same picture with the published code, and different ones with ours."""
    network = small(published_style_code=published)
    generator, content = network.painting, network.photo.content(images())
    first = torch.randn(2, 8, 4, 4, generator=torch.Generator().manual_seed(0))
    mean = first.mean((2, 3), keepdim=True)
    painted = []
    for feature in (first, 3 * (first - mean).flip(1) + mean):
        monkeypatch.setattr(generator.style_encoder, "forward", lambda x, feature=feature: feature)
        painted.append(generator.decode(content, generator.style(images())))
    change = (painted[0] - painted[1]).abs().mean()
    # rounding of two means, or as much as two other pictures differ
    assert change < 1e-5 if published else change > 0.05


def test_ours_has_the_covariance_of_the_style():
    """The whole of it at alpha = 1, up to eps, where the content has as many positions as that needs."""
    style = small().painting.style(images(2, 64)).detach().double()
    content = torch.randn(2, 8, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = style_code(whiten_color(content, style, alpha=1.0, eps=EPS))
    expected = style_code(style)
    torch.testing.assert_close(found.mean, expected.mean, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.covariance, expected.covariance, rtol=0, atol=10 * EPS)
    assert expected.covariance.abs().max() > 1e3 * EPS


def test_style_code_is_that_of_torch():
    style = torch.randn(2, 5, 3, 4, generator=torch.Generator().manual_seed(0))
    code = style_code(style)
    torch.testing.assert_close(code.mean, style.mean((2, 3)))
    torch.testing.assert_close(code.covariance, torch.stack([torch.cov(x.flatten(1)) for x in style]))
    assert not style_code(style[:, :, :1, :1]).covariance.any()


@pytest.mark.parametrize("preset", [name for name in models.preset_names() if name != "pi"])
def test_presets_train(preset):
    network = small(preset, width=1)
    painted, photographed = network(images(), images(seed=1))
    (painted.square().sum() + photographed.square().sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_baseline_is_adaptive_instance_normalisation():
    (transform,) = small("baseline", blocks=0).painting.decoder.transforms
    content, style = (torch.randn(2, 8, 6, 6, generator=torch.Generator().manual_seed(k)) for k in range(2))
    scale = ((style.var((2, 3)) + EPS) / (content.var((2, 3)) + EPS)).sqrt()[..., None, None]
    adapted = (content - content.mean((2, 3), keepdim=True)) * scale + style.mean((2, 3), keepdim=True)
    torch.testing.assert_close(transform(content, style), 0.6 * adapted + 0.4 * content, rtol=0, atol=1e-5)


def test_set_preset():
    network = small()
    models.set_preset(network, "mpa-lya")
    transform = network.photo.decoder.transforms[1]
    assert (transform.method, transform.gradient) == (matroot.Pade(), matroot.Lyapunov())
    with pytest.raises(ValueError, match="'power-iteration' has no inverse root"):
        models.set_preset(network, "pi")
    with pytest.raises(ValueError, match="'power-iteration' has no inverse root"):
        small("pi")
    with pytest.raises(ValueError, match="unknown preset 'mpa'"):
        small("mpa")


def test_roots_are_of_float32_under_autocast(monkeypatch):
    seen = []
    for name in ("sqrtm", "invsqrtm"):
        original = getattr(matroot, name)

        def root(A, *arguments, original=original, **options):
            seen.append(A.dtype)
            return original(A, *arguments, **options)

        # The package has a function of the module's name.
        monkeypatch.setattr(sys.modules["matroot.nn.whiten_color"], name, root)
    network = small()
    exact = network.to_paintings(images(), images(seed=1))
    with torch.autocast("cpu", torch.bfloat16):
        found = network.to_paintings(images(), images(seed=1))
    assert seen == [torch.float32] * 6
    # eight bits of convolutions between transforms that undo part of a rounding and stretch the rest
    assert (found - exact).abs().mean() < 0.1


def test_weights_come_back_with_their_network(tmp_path):
    path = tmp_path / "weights.safetensors"
    network = small("mpa-lya", published_style_code=True, alpha=0.3)
    models.save(network, path)
    again = models.load(path)
    assert isinstance(again, StyleExchange)
    assert again.painting.published_style_code
    assert again.painting.decoder.transforms[0].method == matroot.Pade()
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    other = small("ns")
    assert models.load_weights(other, path) == []
    assert other.photo.decoder.transforms[0].alpha.item() == pytest.approx(0.3, abs=1e-6)
    with pytest.raises(models.WeightsError, match="has the weights of style_exchange; expected those of resnet18_dbn"):
        models.load_weights(models.resnet18_dbn(width=4), path)
