"""What holds for every network."""

import copy

import pytest
import torch
from torch import nn

import matroot
from matroot import models

from .networks import PAIRS, REDUCED, build, inputs, root_layers

every_network = pytest.mark.parametrize("name", REDUCED)


def test_every_network_is_in_the_table():
    assert set(REDUCED) == set(models.list_models())


@pytest.mark.parametrize(("name", "preset"), PAIRS)
def test_every_preset_gives_finite_logits_and_gradients(name, preset):
    model = build(name, preset)
    logits = model(inputs(name))
    assert logits.shape == (4, 4)
    assert logits.isfinite().all()
    nn.functional.cross_entropy(logits, torch.arange(4)).backward()
    for parameter, tensor in model.named_parameters():
        assert tensor.grad is not None, parameter
        assert tensor.grad.isfinite().all(), parameter


@pytest.mark.parametrize(("name", "preset"), PAIRS)
def test_a_preset_arrives_in_every_layer(name, preset):
    layers = root_layers(build(name, preset))
    if preset == "baseline":
        assert not layers
        return
    assert layers
    paper = matroot.preset(preset) if preset != "default" else {"method": "auto", "gradient": None}
    for layer in layers:
        assert {"method": layer.method, "gradient": layer.gradient} == paper


@every_network
def test_method_and_gradient_replace_those_of_the_preset(name):
    method = matroot.Pade(degree=7)
    for layer in root_layers(build(name, "mpa-lya", method=method)):
        assert (layer.method, layer.gradient) == (method, matroot.Lyapunov())
    for layer in root_layers(build(name, "mpa-lya", gradient="exact")):
        assert (layer.method, layer.gradient) == (matroot.Pade(), "exact")


@every_network
def test_set_preset_is_building_with_it(name):
    changed, built = build(name), build(name, "mpa-lya")
    models.set_preset(changed, "mpa-lya")
    assert changed.arguments == built.arguments
    assert torch.equal(changed(inputs(name)), built(inputs(name)))
    models.set_preset(changed, "default")
    assert {layer.method for layer in root_layers(changed)} == {"auto"}


@every_network
def test_set_preset_refuses_the_baseline(name):
    model = build(name)
    with pytest.raises(ValueError, match="build it with preset='baseline'"):
        models.set_preset(model, "baseline")
    with pytest.raises(ValueError, match="has no layer that takes roots"):
        models.set_preset(build(name, "baseline"), "ns")
    with pytest.raises(ValueError, match=r"unknown preset 'nss'; did you mean 'ns'\? Valid names are default, mpa-lya"):
        models.set_preset(model, "nss")
    assert model.arguments["preset"] == "default"


@every_network
def test_the_baseline_has_no_method(name):
    with pytest.raises(ValueError, match="the baseline network takes no root"):
        build(name, "baseline", method="pade")


@every_network
def test_two_exact_roots_give_the_same_logits_and_an_approximate_one_others(name):
    """In float64. Roots of eigenvalues that are zero up to rounding have an error of sqrt(eps), 1e-8."""
    exact, eigen, approximate = (
        build(name, preset).double()(inputs(name).double()) for preset in ("default", "svd-lya", "mpa-lya")
    )
    torch.testing.assert_close(eigen, exact, rtol=1e-5, atol=1e-6)
    assert (approximate - exact).abs().max() > 1e-5


@every_network
def test_evaluation_depends_on_the_example_alone(name):
    model, x = build(name), inputs(name)
    model(x)
    model.eval()
    before = copy.deepcopy(model.state_dict())
    y = model(x)
    assert torch.equal(model(x), y)
    # Sums over another batch are in another order: rounding.
    torch.testing.assert_close(model(x[:1]), y[:1], rtol=1e-4, atol=1e-4)
    for tensor, value in model.state_dict().items():
        assert torch.equal(value, before[tensor]), tensor


@every_network
def test_state_goes_to_another_network(name):
    one = build(name)
    one(inputs(name))
    torch.manual_seed(5)
    other = models.create(**{**one.arguments, "preset": "mpa-lya"})
    other.load_state_dict(one.state_dict())
    models.set_preset(other, "default")
    assert torch.equal(other.eval()(inputs(name)), one.eval()(inputs(name)))


@every_network
def test_a_new_classifier_changes_nothing_else(name):
    model = build(name)
    state = copy.deepcopy(model.state_dict())
    model.reset_classifier(7)
    assert model.num_classes == 7
    assert model(inputs(name)).shape == (4, 7)
    shapes = {tensor for tensor, value in model.state_dict().items() if value.shape != state[tensor].shape}
    layers = {tensor.rpartition(".")[0] for tensor in shapes}
    assert layers == set(models._registry.find(name).classifier)
    classifier = {id(parameter) for parameter in model.get_classifier().parameters()}
    assert all(id(value) in classifier for tensor, value in model.named_parameters() if tensor in shapes)


@every_network
def test_channels_last_changes_the_layout_alone(name):
    model, x = build(name).double(), inputs(name).double()
    expected = model(x)
    model = build(name).double()
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):  # not Conv3d, whose weights have no such layout
            layer.to(memory_format=torch.channels_last)
    if x.ndim == 4:
        x = x.to(memory_format=torch.channels_last)
    # Rounding of float64, amplified by the depth of the network.
    torch.testing.assert_close(model(x), expected, rtol=1e-9, atol=1e-9)


@every_network
def test_autocast(name):
    model = build(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs(name))
    assert logits.dtype == torch.bfloat16
    nn.functional.cross_entropy(logits.float(), torch.arange(4)).backward()
    for parameter, tensor in model.named_parameters():
        assert tensor.grad is not None, parameter
        assert tensor.grad.isfinite().all(), parameter

    model = build(name).eval()
    expected = model(inputs(name))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs(name))
    # Each of some 50 layers rounds to 8 bits: sqrt(50) * 2^-9 = 0.014, and some are amplified.
    assert (logits - expected).norm() < 0.1 * expected.norm()


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("resnet18_dbn", "mpa-lya"),
        *((name, "default") for name, reduced in REDUCED.items() if reduced.steps is not None),
    ],
)
def test_thirty_two_examples_are_learned(name, preset):
    """Within four times the usual steps: how many it takes depends on rounding, and so on the processor."""
    model, x, labels = build(name, preset), inputs(name, 32), torch.arange(32) % 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    learned = 0
    for step in range(4 * REDUCED[name].steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model.train()(x), labels).backward()
        optimizer.step()
        if (step + 1) % REDUCED[name].steps == 0:
            learned = int((model.eval()(x).argmax(1) == labels).sum())
            if learned > 0.95 * 32:
                break
    assert learned > 0.95 * 32
