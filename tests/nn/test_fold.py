"""Folding an evaluated layer into the one before it."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d, DecorrelatedBatchNorm3d, fold

CASES = {
    "linear": (nn.Linear(5, 8), DecorrelatedBatchNorm1d, (6, 5)),
    "linear-no-bias": (nn.Linear(5, 8, bias=False), DecorrelatedBatchNorm1d, (6, 5)),
    "conv1d": (nn.Conv1d(5, 8, 3, padding=1), DecorrelatedBatchNorm1d, (6, 5, 7)),
    "conv2d-strided": (nn.Conv2d(5, 8, 3, stride=2, dilation=2, bias=False), DecorrelatedBatchNorm2d, (3, 5, 9, 8)),
    "conv2d-reflect": (nn.Conv2d(5, 8, 3, padding=1, padding_mode="reflect"), DecorrelatedBatchNorm2d, (3, 5, 6, 6)),
    "conv2d-grouped": (nn.Conv2d(6, 8, 3, groups=2), DecorrelatedBatchNorm2d, (3, 6, 5, 5)),
    "conv3d": (nn.Conv3d(5, 8, 2), DecorrelatedBatchNorm3d, (2, 5, 4, 4, 4)),
}
every_case = pytest.mark.parametrize("case", CASES)


def trained(case, dtype=torch.float64, groups=2, **options):
    """Layer, norm with statistics and parameters that are not neutral, input."""
    torch.manual_seed(0)
    layer, norm, shape = CASES[case]
    layer, norm = copy.deepcopy(layer).to(dtype), norm(8, groups=groups, dtype=dtype, **options)
    for _ in range(3):
        norm(layer(torch.randn(shape, dtype=dtype) + 1))
    if norm.affine:
        nn.init.uniform_(norm.weight)
        nn.init.uniform_(norm.bias)
    return layer, norm.eval(), torch.randn(shape, dtype=dtype)


@every_case
@pytest.mark.parametrize("track", ["whitening", "covariance"])
@pytest.mark.parametrize("affine", [True, False])
def test_one_layer_does_the_work_of_two(case, track, affine):
    layer, norm, x = trained(case, track=track, affine=affine)
    folded = fold(layer, norm)
    assert type(folded) is type(layer)
    expected = norm(layer(x))
    assert (expected - layer(x)).abs().max() > 0.1
    torch.testing.assert_close(folded(x), expected, rtol=1e-10, atol=1e-10)  # float64, another order


@every_case
def test_in_half_precision_only_weights_are_rounded(case):
    layer, norm, x = trained(case, dtype=torch.float32)
    folded = fold(copy.deepcopy(layer).bfloat16(), norm)
    assert folded.weight.dtype == folded.bias.dtype == torch.bfloat16
    expected = norm(layer(x))
    # Weights rounded before and after, to half of 2^-7 each; the sum has up to 54 terms.
    assert (folded.float()(x) - expected).abs().max() < 2**-7 * 8 * expected.abs().max()


def test_arguments_do_not_change():
    layer, norm, x = trained("conv2d-strided")
    before = copy.deepcopy((layer.state_dict(), norm.state_dict()))
    layer.weight.requires_grad_(False)
    folded = fold(layer, norm)
    for state, old in zip((layer.state_dict(), norm.state_dict()), before, strict=True):
        assert state.keys() == old.keys()
        assert all(torch.equal(value, old[name]) for name, value in state.items())
    assert layer.bias is None
    assert (folded.stride, folded.dilation) == (layer.stride, layer.dilation)
    assert not folded.weight.requires_grad
    assert not folded.bias.requires_grad
    folded.weight.zero_()
    assert layer(x).abs().max() > 0


@pytest.mark.parametrize(("groups", "fits"), [(1, False), (2, True), (4, True), (8, True)])
def test_groups_of_a_convolution(groups, fits):
    """Channels of different convolution groups see different inputs: one filter cannot mix them."""
    layer, norm, x = trained("conv2d-grouped", groups=groups)
    if fits:
        torch.testing.assert_close(fold(layer, norm)(x), norm(layer(x)))
    else:
        with pytest.raises(ValueError, match="groups of 8 channels in norm straddle those of 4 in the convolution"):
            fold(layer, norm)


class Standardised(nn.Conv2d):
    def forward(self, x):
        return self._conv_forward(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)


class Scaled(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, 2 * weight, bias)


class Initialised(nn.Conv2d):
    def __init__(self):
        super().__init__(4, 8, 3)
        nn.init.ones_(self.weight)


@pytest.mark.parametrize("cls", [Standardised, Scaled])
def test_convolutions_that_compute_something_else_are_refused(cls):
    with pytest.raises(TypeError, match=f"a {cls.__name__}, which may compute something else than Conv2d"):
        fold(cls(4, 8, 3), DecorrelatedBatchNorm2d(8).eval())


@pytest.mark.parametrize(
    "change",
    [parametrizations.weight_norm, parametrizations.spectral_norm, lambda m: prune.l1_unstructured(m, "bias", 0.5)],
)
def test_weights_that_are_computed_are_refused(change):
    with pytest.raises(TypeError, match=r"weight or bias of this .*Conv2d are computed from others"):
        fold(change(nn.Conv2d(4, 8, 3)), DecorrelatedBatchNorm2d(8).eval())


def test_what_was_made_permanent_is_folded():
    layer, norm, x = parametrizations.weight_norm(nn.Linear(4, 8)), DecorrelatedBatchNorm1d(8).eval(), torch.ones(2, 4)
    expected = norm(layer(x))
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    torch.testing.assert_close(fold(layer, norm)(x), expected)


def test_a_subclass_with_the_same_forward_is_folded():
    layer, norm, x = Initialised(), DecorrelatedBatchNorm2d(8).eval(), torch.ones(1, 4, 3, 3)
    torch.testing.assert_close(fold(layer, norm)(x), norm(layer(x)))


def test_refusals():
    layer, norm, _ = trained("linear")
    with pytest.raises(ValueError, match="layer has 7 output channels, norm has 8 features"):
        fold(nn.Linear(5, 7), norm)
    with pytest.raises(ValueError, match=r"norm is in training mode.*norm\.eval\(\)"):
        fold(layer, copy.deepcopy(norm).train())
    with pytest.raises(TypeError, match="layer must be Linear, Conv1d, Conv2d or Conv3d, got ConvTranspose2d"):
        fold(nn.ConvTranspose2d(4, 8, 3), norm)
    with pytest.raises(TypeError, match="norm must be a DecorrelatedBatchNorm, got BatchNorm1d"):
        fold(layer, nn.BatchNorm1d(8))
