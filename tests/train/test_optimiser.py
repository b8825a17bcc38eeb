"""Parameter groups, rates and weight decay."""

import pytest
import torch
from torch import nn

from matroot.train.optimiser import create_optimizer, parameters_of, set_rate

from .tiny import CLASSES, TinyNetwork, tiny_recipe


def groups_of(network, **fields):
    """For every parameter its weight decay and its rate."""
    optimizer = create_optimizer(network, tiny_recipe(**fields))
    set_rate(optimizer, 0.5)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        names[id(parameter)]: (group["weight_decay"], group["lr"].item())
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


def test_sgd_decays_everything():
    """As published: normalisations and biases too."""
    network = TinyNetwork(CLASSES)
    found = groups_of(network, weight_decay=0.25)
    assert found == dict.fromkeys(dict(network.named_parameters()), (0.25, 0.5))


def test_adamw_leaves_out_vectors():
    network = TinyNetwork(CLASSES)
    found = groups_of(network, optimizer="adamw", weight_decay=0.25)
    assert found == {name: (0.25 if p.ndim > 1 else 0.0, 0.5) for name, p in network.named_parameters()}


def test_adamw_leaves_out_what_the_network_names():
    network = TinyNetwork(CLASSES)
    network.no_weight_decay = lambda: {"stem.weight"}
    assert groups_of(network, optimizer="adamw")["stem.weight"] == (0.0, 0.5)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_classifier_has_its_factor(optimizer):
    found = groups_of(TinyNetwork(CLASSES), optimizer=optimizer, classifier_lr_factor=20.0)
    assert {name: lr for name, (_, lr) in found.items()} == {
        name: 10.0 if name.startswith("fc.") else 0.5 for name in found
    }


def test_frozen_parameters_are_left_out():
    network = TinyNetwork(CLASSES)
    network.stem.requires_grad_(False)
    parameters = parameters_of(create_optimizer(network, tiny_recipe()))
    assert len(parameters) == len(list(network.parameters())) - 2


def test_momentum_is_not_nesterovs():
    """v = 0.9 v + g, w = w - lr v: two steps of gradient 1 move by 0.1 and 0.19."""
    network = nn.Linear(1, 1, bias=False)
    network.get_classifier = lambda: nn.Identity()
    optimizer = create_optimizer(network, tiny_recipe(weight_decay=0.0))
    start = network.weight.item()
    for moved in (0.1, 0.29):
        network.weight.grad = torch.ones(1, 1)
        set_rate(optimizer, 0.1)
        optimizer.step()
        assert start - network.weight.item() == pytest.approx(moved, rel=1e-5)  # float32
