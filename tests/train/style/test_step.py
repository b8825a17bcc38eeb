"""The state of a step: networks and optimisers, from other devices and earlier versions too."""

import copy

import pytest
import torch

from matroot.train.style.run import build
from matroot.train.style.step import Step

from .small import small_recipe

RECIPE = small_recipe()


def make_step():
    return Step(*build(RECIPE), RECIPE)


def batch(seed):
    return torch.rand(2, 2, 3, 32, 32, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def state_after_a_step():
    step = make_step()
    step(*batch(0), 1e-3)
    return copy.deepcopy(step.state())


def weights(step):
    return [p for network in (step.network, step.discriminators) for p in network.parameters()]


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"lr": 0.5, "capturable": False},
        {"lr": torch.tensor(0.5, dtype=torch.float32)},
    ],
    ids=["here", "with a number for the rate", "on a GPU"],
)
def test_a_state_goes_on_as_if_it_had_not_stopped(written):
    """Bit for bit, whatever the rate is in the file."""
    whole = make_step()
    whole(*batch(0), 1e-3)
    state = state_after_a_step()
    for optimizer in state["optimizer"].values():
        optimizer["param_groups"][0].update(written)
    step = make_step()
    step.load_state(**state)
    for seed in (1, 2):
        assert torch.equal(step(*batch(seed), 3e-4), whole(*batch(seed), 3e-4))
    for mine, expected in zip(weights(step), weights(whole), strict=True):
        assert torch.equal(mine, expected)


def test_the_rate_is_that_of_the_call():
    step = make_step()
    step.load_state(**state_after_a_step())
    before = [p.detach().clone() for p in weights(step)]
    step(*batch(1), 0.0)
    assert all(torch.equal(mine, old) for mine, old in zip(weights(step), before, strict=True))
    step(*batch(1), 1e-3)
    assert not any(torch.equal(mine, old) for mine, old in zip(weights(step), before, strict=True))
