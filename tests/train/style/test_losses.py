"""Losses of style exchange by direct formulas, and what a step does with them."""

import pytest
import torch

from matroot.train.style.losses import discriminator_loss, exchange, generator_losses, style_difference, target_distance
from matroot.train.style.run import build
from matroot.train.style.step import LOSSES, Step

from .small import small_recipe


def pictures(seed, count=2):
    """Smooth, so that a small network can learn them."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 3, 4, 4, generator=generator) * 2 - 1
    return torch.nn.functional.interpolate(corners, size=32, mode="bilinear")


PHOTOS, PAINTINGS = pictures(0), pictures(1)


def l1(x, y):
    return (x - y).abs().mean()


def code_distance(x, y):
    """Of means and covariances of features, picture by picture."""
    covariances = [torch.stack([torch.cov(one.flatten(1)) for one in feature]) for feature in (x, y)]
    return l1(x.mean((2, 3)), y.mean((2, 3))) + l1(*covariances)


def test_generator_losses():
    """Every decoder is called once for each picture here; rounding is that of float32 through the network."""
    recipe = small_recipe(reconstruction_weight=7.0, cycle_weight=5.0, style_weight=3.0, content_weight=2.0)
    network, judges = build(recipe)
    a, b = network.photo, network.painting
    content_a, style_a, content_b, style_b = (
        a.content(PHOTOS),
        a.style(PHOTOS),
        b.content(PAINTINGS),
        b.style(PAINTINGS),
    )
    ab, ba = b.decode(content_a, style_b), a.decode(content_b, style_a)
    expected = {
        "adversarial": sum((s - 1).square().mean() for s in (*judges.painting(ab), *judges.photo(ba))),
        "reconstruction": 7 * (l1(a.decode(content_a, style_a), PHOTOS) + l1(b.decode(content_b, style_b), PAINTINGS)),
        "cycle": 5 * (l1(a.decode(b.content(ab), style_a), PHOTOS) + l1(b.decode(a.content(ba), style_b), PAINTINGS)),
        "style": 3 * (code_distance(b.style(ab), style_b) + code_distance(a.style(ba), style_a)),
        "content": 2 * (l1(b.content(ab), content_a) + l1(a.content(ba), content_b)),
    }
    made = exchange(network, PHOTOS, PAINTINGS)
    found = generator_losses(recipe, made, judges, PHOTOS, PAINTINGS)
    assert list(found) == list(expected) == list(LOSSES[:-1])
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4, msg=name)
    fakes = [s.square().mean() for s in (*judges.painting(ab), *judges.photo(ba))]
    reals = [(s - 1).square().mean() for s in (*judges.painting(PAINTINGS), *judges.photo(PHOTOS))]
    torch.testing.assert_close(
        discriminator_loss(made, judges, PHOTOS, PAINTINGS), sum(fakes) + sum(reals), rtol=1e-3, atol=1e-4
    )


def test_least_squares_of_perfect_scores():
    assert target_distance([torch.ones(2, 1, 3, 3), torch.ones(2, 1, 1, 1)], 1) == 0
    assert target_distance([torch.zeros(2, 1, 3, 3), torch.full((2, 1, 1, 1), 3.0)], 1) == 1 + 4


def test_styles_are_compared_without_their_positions():
    style = torch.randn(2, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    assert style_difference(style, style.flip(-1)) < 1e-6
    assert style_difference(style, 2 * style) > 0.1
    one = style[:, :, :1, :1]
    torch.testing.assert_close(style_difference(one, one + 1), torch.tensor(1.0))


@pytest.mark.parametrize("part", ["generators", "discriminators"])
def test_a_step_is_one_of_adam_on_each_loss(part):
    """With clipping: the first step of Adam is the rate times the sign of the gradient, decayed weights included."""
    recipe = small_recipe(clip_norm=1e9, weight_decay=0.1)
    network, judges = build(recipe)
    made = exchange(network, PHOTOS, PAINTINGS)
    if part == "generators":
        loss, trained = sum(generator_losses(recipe, made, judges, PHOTOS, PAINTINGS).values()), network
    else:
        loss, trained = discriminator_loss(made, judges, PHOTOS, PAINTINGS), judges
    parameters = list(trained.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    gradients = torch.autograd.grad(loss, parameters)
    Step(network, judges, recipe)(PHOTOS, PAINTINGS, 1e-3)
    for start, parameter, gradient in zip(before, parameters, gradients, strict=True):
        total = gradient + 0.1 * start
        large = total.abs() > 1e-3  # smaller ones are rounding, and near Adam's own 1e-8
        moved = (parameter - start)[large] / -1e-3
        torch.testing.assert_close(moved, total.sign()[large], rtol=0, atol=1e-2)


def test_gradients_are_clipped():
    recipe = small_recipe(clip_norm=0.01)
    step = Step(*build(recipe), recipe)
    step(PHOTOS, PAINTINGS, 1e-3)
    for network in (step.network, step.discriminators):
        norm = torch.stack([p.grad.norm() for p in network.parameters()]).norm()
        assert norm == pytest.approx(0.01, rel=1e-3)


def test_losses_are_those_before_the_update():
    recipe = small_recipe()
    network, judges = build(recipe)
    expected = generator_losses(recipe, exchange(network, PHOTOS, PAINTINGS), judges, PHOTOS, PAINTINGS)
    found = Step(network, judges, recipe)(PHOTOS, PAINTINGS, 1e-3)
    assert not found.requires_grad
    torch.testing.assert_close(found[:5], torch.stack(list(expected.values())).detach())


def test_one_pair_is_learned():
    """Pictures come back after the exchange with a third of the error of the first steps."""
    recipe = small_recipe(width=6)
    step = Step(*build(recipe), recipe)
    photo, painting = PHOTOS[:1], PAINTINGS[:1]
    losses = torch.stack([step(photo, painting, 2e-3) for _ in range(60)])
    cycle = losses[:, LOSSES.index("cycle")]
    assert cycle[-5:].mean() < cycle[:5].mean() / 3
    assert losses.isfinite().all()


def test_bfloat16_trains_in_channels_last():
    recipe = small_recipe(precision="bfloat16", channels_last=True)
    half, whole = (Step(*build(r), r)(PHOTOS, PAINTINGS, 0.0) for r in (recipe, small_recipe()))
    # eight bits of convolutions
    torch.testing.assert_close(half, whole, rtol=0.1, atol=0.05)
    assert not torch.equal(half, whole)
