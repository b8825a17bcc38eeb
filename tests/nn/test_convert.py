"""Converting models with batch normalisation."""

import copy

import pytest
import torch
from torch import nn

from matroot.nn import (
    DecorrelatedBatchNorm,
    DecorrelatedBatchNorm1d,
    DecorrelatedBatchNorm2d,
    DecorrelatedBatchNorm3d,
    convert_decorrelated_batchnorm,
)

from .correlated import correlated


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels, eps=1e-3, momentum=0.3)
        self.bn2 = nn.BatchNorm2d(channels, affine=False)

    def forward(self, x):
        return self.bn2(torch.relu(self.bn1(self.conv(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(6)
        self.layer1 = Block(6)
        self.layer2 = Block(6)

    def forward(self, x):
        return self.layer2(self.layer1(self.bn1(x)))


def trained(model=None):
    torch.manual_seed(0)
    model = Net() if model is None else model
    model = model.double()
    for seed in range(3):
        model(correlated(4, 6, 5, 5, condition=100, mean=1.0, seed=seed)).square().sum().backward()
    return model


def decorrelated(model):
    return {name for name, layer in model.named_modules() if isinstance(layer, DecorrelatedBatchNorm)}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", {"bn1", "layer1.bn1", "layer1.bn2", "layer2.bn1", "layer2.bn2"}),
        ("bn1", {"bn1"}),
        ("*.bn1", {"layer1.bn1", "layer2.bn1"}),
        ("layer?.bn2", {"layer1.bn2", "layer2.bn2"}),
        (["bn1", "layer2.*"], {"bn1", "layer2.bn1", "layer2.bn2"}),
    ],
)
def test_names_are_matched(pattern, names):
    model = Net()
    assert convert_decorrelated_batchnorm(model, pattern) is model
    assert decorrelated(model) == names
    assert isinstance(model.layer1.conv, nn.Conv2d)


@pytest.mark.parametrize("track", ["whitening", "covariance"])
def test_evaluation_is_the_same_until_trained(track):
    model = trained().eval()
    converted = convert_decorrelated_batchnorm(copy.deepcopy(model), group_size=3, track=track)
    x = correlated(4, 6, 5, 5, seed=9)
    torch.testing.assert_close(converted(x), model(x), rtol=1e-10, atol=1e-10)  # float64, another order
    converted.train()(x)
    assert not torch.allclose(converted.eval()(x), model(x))


def test_what_is_kept():
    model = trained()
    model.layer1.eval()
    model.layer2.bn1.weight.requires_grad_(False)
    old = dict(model.named_modules())
    parameters = dict(model.named_parameters())
    convert_decorrelated_batchnorm(model, groups=2, momentum=0.5)
    assert dict(model.named_parameters()).keys() == parameters.keys()
    assert all(p is parameters[name] for name, p in model.named_parameters())  # optimisers keep training them
    for name in decorrelated(model):
        new = model.get_submodule(name)
        assert new.training == old[name].training == (not name.startswith("layer1"))
        assert (new.num_features, new.groups, new.eps) == (6, 2, old[name].eps)
        assert new.affine == old[name].affine
        assert new.momentum == 0.5
        assert new.running_mean.dtype == new.running_whitening.dtype == torch.float64
        assert new.num_batches_tracked == 3
    assert not model.layer2.bn1.weight.requires_grad


def test_momentum_and_eps_are_the_layers_own():
    model = convert_decorrelated_batchnorm(Net())
    assert (model.bn1.eps, model.bn1.momentum) == (1e-5, 0.1)
    assert (model.layer1.bn1.eps, model.layer1.bn1.momentum) == (1e-3, 0.3)
    assert convert_decorrelated_batchnorm(Net(), eps=1e-2).layer1.bn1.eps == 1e-2


def test_device_is_kept():
    model = convert_decorrelated_batchnorm(nn.Sequential(nn.BatchNorm2d(4, device="meta", dtype=torch.bfloat16)))
    assert model[0].weight.is_meta
    assert model[0].running_mean.is_meta
    assert model[0].weight.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.BatchNorm1d, DecorrelatedBatchNorm1d),
        (nn.BatchNorm2d, DecorrelatedBatchNorm2d),
        (nn.BatchNorm3d, DecorrelatedBatchNorm3d),
        (nn.SyncBatchNorm, DecorrelatedBatchNorm),
    ],
)
def test_a_model_that_is_a_layer(layer, expected):
    assert type(convert_decorrelated_batchnorm(layer(4))) is expected


def test_a_layer_in_two_places_stays_one():
    shared = nn.BatchNorm2d(4)
    model = convert_decorrelated_batchnorm(nn.Sequential(shared, nn.ReLU(), shared))
    assert isinstance(model[0], DecorrelatedBatchNorm2d)
    assert model[0] is model[2]


def test_training_learns_through_a_converted_model():
    model = convert_decorrelated_batchnorm(trained(), "bn1")
    model.zero_grad()
    model(correlated(4, 6, 5, 5)).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert model.bn1.weight.grad.abs().max() > 0


def test_nothing_matches():
    with pytest.raises(ValueError, match=r"no BatchNorm layer matches 'norm\*'; this model's are: 'bn1', 'layer1.bn1'"):
        convert_decorrelated_batchnorm(Net(), "norm*")
    with pytest.raises(ValueError, match="this model's are: none"):
        convert_decorrelated_batchnorm(nn.Linear(2, 2))


def test_options_that_do_not_fit_name_the_layer_and_change_nothing():
    model = Net()
    model.layer2.bn2 = nn.BatchNorm2d(5)
    with pytest.raises(ValueError, match=r"layer 'layer2.bn2': group_size 3 must divide num_features 5"):
        convert_decorrelated_batchnorm(model, group_size=3)
    assert not decorrelated(model)


# --- subclasses and variants ---------------------------------------------------------------------


class BatchNormAct2d(nn.BatchNorm2d):
    """As timm's: the activation is in the layer."""

    def __init__(self, channels, act=nn.SiLU, drop=nn.Identity):
        super().__init__(channels)
        self.drop, self.act = drop(), act()

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


class SyncBatchNormAct(nn.SyncBatchNorm):
    """What timm makes of it for several processes."""

    def __init__(self, channels):
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.SiLU()

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


class Doubled(nn.BatchNorm2d):
    def forward(self, x):
        return 2 * super().forward(x)


def with_statistics(layer):
    """Parameters and running statistics that differ from 1 and 0, in evaluation mode."""
    torch.manual_seed(0)
    layer = layer.double().eval()
    with torch.no_grad():
        for tensor in (layer.weight, layer.running_var):
            tensor.uniform_(0.5, 2)
        for tensor in (layer.bias, layer.running_mean):
            if tensor is not None:
                tensor.normal_()
    return layer


def assert_evaluates_the_same(layer, *shapes):
    """In float64, up to the order of operations. Returns the converted layer."""
    converted = convert_decorrelated_batchnorm(nn.Sequential(copy.deepcopy(layer)), group_size=2)[0]
    for shape in shapes:
        x = torch.randn(shape, dtype=torch.float64)
        torch.testing.assert_close(converted(x), layer(x), rtol=1e-10, atol=1e-10)
    return converted


@pytest.mark.parametrize("cls", [BatchNormAct2d, SyncBatchNormAct])
def test_the_activation_of_a_layer_is_kept(cls):
    layer = with_statistics(cls(4))
    layer.act.train()
    converted = assert_evaluates_the_same(layer, (3, 4, 5, 5))
    assert [name for name, _ in converted.named_children()] == ["norm", "drop", "act"]
    assert isinstance(converted.norm, DecorrelatedBatchNorm)
    assert (converted.training, converted.norm.training, converted.act.training) == (False, False, True)


def test_the_drop_of_a_layer_comes_before_its_activation():
    """Twice the input, then a bounded activation: the order shows."""

    class Double(nn.Module):
        def forward(self, x):
            return 2 * x

    assert_evaluates_the_same(with_statistics(BatchNormAct2d(4, nn.Tanh, Double)), (3, 4, 5, 5))


def test_any_number_of_dimensions_of_a_sync_batch_norm():
    converted = assert_evaluates_the_same(
        with_statistics(nn.SyncBatchNorm(4)), (5, 4), (5, 4, 3), (5, 4, 3, 2), (5, 4, 3, 2, 2)
    )
    assert converted.process_group == "world"
    own = convert_decorrelated_batchnorm(nn.SyncBatchNorm(4), process_group=None)
    assert own.process_group is None


def test_a_layer_without_bias_gets_none_to_train():
    layer = nn.BatchNorm2d(4)
    layer.bias = None
    converted = assert_evaluates_the_same(with_statistics(layer), (3, 4, 5, 5))
    assert [name for name, p in converted.named_parameters() if p.requires_grad] == ["weight"]
    assert not converted.bias.any()


def test_other_subclasses_are_refused_by_name():
    """Also one with timm's name and other children."""

    class BatchNormAct2d(nn.BatchNorm2d):
        def __init__(self, channels):
            super().__init__(channels)
            self.gate = nn.Sigmoid()

    for layer, kind in ((Doubled(4), "Doubled"), (BatchNormAct2d(4), r".*<locals>\.BatchNormAct2d")):
        model = nn.Sequential(nn.BatchNorm2d(4), nn.Sequential(layer))
        with pytest.raises(TypeError, match=rf"layer '1\.0' is a tests\.nn\.test_convert\.{kind}, which may do more"):
            convert_decorrelated_batchnorm(model)
        assert not decorrelated(model)
        assert decorrelated(convert_decorrelated_batchnorm(model, "0")) == {"0"}


def test_a_lazy_layer_is_converted_once_it_has_seen_features():
    model = nn.Sequential(nn.LazyBatchNorm2d())
    with pytest.raises(TypeError, match=r"layer '0' is a LazyBatchNorm2d without channels; run the model once first"):
        convert_decorrelated_batchnorm(model)
    model(torch.randn(3, 4, 2, 2))
    assert decorrelated(convert_decorrelated_batchnorm(model)) == {"0"}


def test_layers_without_running_statistics_are_refused():
    with pytest.raises(ValueError, match="layer '0' keeps no running statistics"):
        convert_decorrelated_batchnorm(nn.Sequential(nn.BatchNorm2d(4, track_running_stats=False)))
