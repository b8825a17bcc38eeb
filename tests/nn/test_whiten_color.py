"""Whitening and colouring: whose mean and covariance the result has."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from matroot.nn import WhitenColor, coloring, covariance, whiten_color

from ..matrices import error, exact_inverse_root, exact_root, with_eigenvalues


def features(*shape, dtype=torch.float64, seed=0):
    """Correlated channels with a mean, their covariance of condition 16 up to sampling."""
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    mix = with_eigenvalues(torch.linspace(0.5, 2, shape[1]), seed)
    return (torch.einsum("oc,bc...->bo...", mix, x) + torch.arange(shape[1]).view(-1, *[1] * (x.ndim - 2))).to(dtype)


def statistics(x):
    return x.flatten(2).mean(-1), covariance(x, correction=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(10, 14), st.integers(7, 20), st.integers(0, 99))
def test_result_has_the_statistics_of_the_style(channels, width, height, seed):
    """Covariances differ by eps (I - S_style^(1/2) S_content^(-1) S_style^(1/2)), S being those with eps added."""
    content, style = features(2, channels, width, width, seed=seed), features(2, channels, height * 4, seed=seed + 100)
    eps = 1e-5
    mean, cov = statistics(whiten_color(content, style, alpha=1.0, eps=eps))
    style_mean, style_cov = statistics(style)
    eye = eps * torch.eye(channels).double()
    S, R = exact_root(style_cov + eye), exact_inverse_root(statistics(content)[1] + eye)
    # rounding at condition numbers below a thousand
    torch.testing.assert_close(cov, style_cov + eye - eps * S @ R @ R @ S, rtol=0, atol=1e-11)
    stretch = torch.linalg.matrix_norm(S @ R, 2).max() ** 2
    assert torch.linalg.matrix_norm(cov - style_cov, 2).max() < 1.001 * eps * torch.maximum(stretch, torch.ones(()))
    torch.testing.assert_close(mean, style_mean, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_statistics_in_each_precision(dtype):
    """Rounding of the inverse root grows with the condition number, some tens here."""
    content, style = features(3, 8, 20, 20, dtype=dtype), features(3, 8, 15, 17, dtype=dtype, seed=1)
    mean, cov = statistics(whiten_color(content, style, eps=0.0).double())
    style_mean, style_cov = statistics(style.double())
    assert error(cov, style_cov) < 200 * torch.finfo(dtype).eps
    torch.testing.assert_close(mean, style_mean, rtol=0, atol=50 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_alpha_zero_returns_the_content(dtype):
    content, style = features(2, 5, 4, 4, dtype=dtype), features(2, 5, 3, 3, dtype=dtype, seed=1)
    assert torch.equal(whiten_color(content, style, alpha=0.0), content)
    assert torch.equal(WhitenColor(alpha=0.0, learnable=False)(content, style), content)


@pytest.mark.parametrize("positions", [3, 50])
def test_content_in_its_own_style_is_itself(positions):
    """The root and the inverse root of one matrix are inverse, also where only eps makes it regular."""
    x = features(2, 6, positions)
    torch.testing.assert_close(whiten_color(x, x), x, rtol=1e-8, atol=1e-8)


def test_blend_is_linear():
    content, style = features(2, 5, 4, 4), features(2, 5, 3, 3, seed=1)
    whole = whiten_color(content, style)
    torch.testing.assert_close(whiten_color(content, style, alpha=0.3), 0.3 * whole + 0.7 * content)
    per_map = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    found = whiten_color(content, style, alpha=per_map)
    assert torch.equal(found[0], content[0])
    torch.testing.assert_close(found[1], whole[1])


def test_groups_are_separate():
    content, style = features(2, 6, 40), features(2, 6, 50, seed=1)
    found = whiten_color(content, style, groups=2)
    for part in (slice(0, 3), slice(3, 6)):
        torch.testing.assert_close(found[:, part], whiten_color(content[:, part], style[:, part]), rtol=1e-9, atol=1e-9)
    assert (found - whiten_color(content, style)).abs().max() > 0.1


def test_as_many_groups_as_channels_is_adaptive_instance_normalisation():
    content, style = features(2, 5, 40), features(2, 5, 50, seed=1)
    scale = ((style.var(-1) + 1e-5) / (content.var(-1) + 1e-5)).sqrt()[..., None]
    expected = (content - content.mean(-1, keepdim=True)) * scale + style.mean(-1, keepdim=True)
    torch.testing.assert_close(whiten_color(content, style, groups=5), expected, rtol=1e-10, atol=1e-10)


def test_one_style_for_a_batch():
    content, style = features(3, 5, 4, 4), features(1, 5, 6, 6, seed=1)
    found = whiten_color(content, style)
    for i in range(3):
        torch.testing.assert_close(found[i : i + 1], whiten_color(content[i : i + 1], style), rtol=1e-10, atol=1e-10)


def test_content_without_features_takes_the_mean_of_the_style():
    style = features(1, 5, 6, 6)
    found = whiten_color(torch.zeros(1, 5, 2, 3).double(), style)
    expected = style.mean((2, 3), keepdim=True).expand(1, 5, 2, 3)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_dimensions_may_differ():
    content, style = features(2, 5, 4, 3, 2), features(2, 5, 30, seed=1)
    assert whiten_color(content, style).shape == content.shape


def test_learned_blend_starts_where_told_and_stays_inside():
    layer = WhitenColor(alpha=0.6)
    assert layer.alpha.item() == pytest.approx(0.6, abs=1e-7)
    content, style = features(2, 5, 4, 4, dtype=torch.float32), features(2, 5, 3, 3, dtype=torch.float32, seed=1)
    torch.testing.assert_close(layer(content, style), whiten_color(content, style, alpha=0.6))
    (layer(content, style) - style.mean()).square().sum().backward()
    assert layer.logit.grad.abs() > 0
    torch.optim.SGD(layer.parameters(), lr=1e3).step()
    assert 0 <= layer.alpha.item() <= 1
    assert layer.alpha.item() != pytest.approx(0.6, abs=1e-3)
    assert not list(WhitenColor(learnable=False).parameters())


def test_gradcheck_through_both():
    content, style = features(2, 3, 5).requires_grad_(), features(1, 3, 4, seed=1).requires_grad_()
    alpha = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda c, s, a: whiten_color(c, s, alpha=a), (content, style, alpha))


def test_refuses():
    content = torch.ones(2, 6, 4, 4)
    with pytest.raises(ValueError, match="content has 6 channels and style 5"):
        whiten_color(content, torch.ones(2, 5, 4, 4))
    with pytest.raises(ValueError, match="batch of 1 or of content's 2; got 3"):
        whiten_color(content, torch.ones(3, 6, 4, 4))
    with pytest.raises(ValueError, match="got 4 groups and 6 channels"):
        WhitenColor(groups=4)(content, content)
    with pytest.raises(ValueError, match="got 0 groups and 6 channels"):
        whiten_color(content, content, groups=0)
    with pytest.raises(ValueError, match=r"style must be .* 3 dimensions or more; got 2"):
        whiten_color(content, torch.ones(2, 6))
    with pytest.raises(ValueError, match=r"content must be .* 3 dimensions or more; got 1"):
        whiten_color(torch.ones(2), content)
    for alpha in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=rf"in \[0, 1\], got {alpha}"):
            whiten_color(content, content, alpha=alpha)
    for eps in (-1e-5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"eps must be .*, got {eps}"):
            whiten_color(content, content, eps=eps)
    with pytest.raises(ValueError, match=r"eps must be .*, got -1"):
        WhitenColor(eps=-1)
    with pytest.raises(ValueError, match="method 'power-iteration' has no inverse root"):
        WhitenColor(method="power-iteration")
    for alpha in (0, 1.0):
        with pytest.raises(ValueError, match=f"strictly between 0 and 1, got {alpha}"):
            WhitenColor(alpha=alpha)


@pytest.mark.parametrize("groups", [1, 5])
def test_a_style_can_be_prepared_once(groups):
    content, style = features(3, 5, 6, 4), features(1, 5, 3, 7)
    prepared = coloring(style, groups=groups)
    expected = whiten_color(content, style, alpha=0.7, groups=groups)
    torch.testing.assert_close(whiten_color(content, prepared, alpha=0.7, groups=groups), expected)
    torch.testing.assert_close(whiten_color(content, prepared.repeat(3), alpha=0.7, groups=groups), expected)
    layer = WhitenColor(alpha=0.7, groups=groups, learnable=False)
    torch.testing.assert_close(layer(content, layer.coloring(style)), expected)


def test_a_prepared_style_that_does_not_fit_is_refused():
    content, prepared = features(3, 4, 6, 4), coloring(features(2, 4, 3, 7))
    with pytest.raises(ValueError, match="batch of 1 or of content's 3; got 2"):
        whiten_color(content, prepared)
    with pytest.raises(ValueError, match="content has 6 channels and style 4"):
        whiten_color(features(2, 6, 5), prepared)
    with pytest.raises(ValueError, match="prepared for 1 groups, not 2"):
        whiten_color(features(2, 4, 5), prepared, groups=2)
    with pytest.raises(ValueError, match="groups must divide the channels"):
        coloring(features(2, 4, 5), groups=3)
