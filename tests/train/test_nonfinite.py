"""A loss that is not finite names its layer."""

import json

import pytest
import torch
from torch import nn

from matroot import models
from matroot.train import data, run
from matroot.train.nonfinite import NonFiniteError, diagnose

from .tiny import CLASSES, TinyNetwork, tiny_data, tiny_recipe


class Bad(nn.Module):
    """Infinite values, or an infinite gradient, where the sum of its input is large."""

    def __init__(self, forward, backward):
        super().__init__()
        self.values, self.gradient = forward, backward

    def forward(self, x):
        if self.gradient:
            x = x + (x - x.detach()).abs().sqrt()
        return x * torch.inf if self.values else x


def network_with(**kind):
    torch.manual_seed(0)
    network = TinyNetwork(CLASSES)
    network.block.insert(3, Bad(kind.get("forward", False), kind.get("backward", False)))
    return network


def diagnosis(network, images=None):
    given, labels = next(tiny_data(tiny_recipe()).train.epoch(1))
    return diagnose(network, tiny_recipe(), given if images is None else images, labels)


def test_the_output_of_a_layer_is_named_with_its_input():
    found = diagnosis(network_with(forward=True))
    assert found.startswith("the output of block.3 (Bad) is not finite; its input, (16, 8, 3, 3), is between -")


def test_a_weight_that_is_not_finite_is_named():
    network = TinyNetwork(CLASSES)
    with torch.no_grad():
        network.whiten.weight[2] = torch.nan
    assert diagnosis(network) == "the output of whiten (DecorrelatedBatchNorm2d) is not finite: its weight is not"


def test_the_backward_pass_of_a_layer_is_named():
    assert diagnosis(network_with(backward=True)).startswith("the backward pass of block.3 (Bad) makes")


def test_images_are_looked_at_first():
    assert "images of the batch" in diagnosis(TinyNetwork(CLASSES), torch.full((16, 2, 8, 8), torch.nan))


def test_a_finite_batch_says_so():
    assert "finite when it is repeated" in diagnosis(TinyNetwork(CLASSES))


def test_no_hook_stays():
    network = network_with(forward=True)
    diagnosis(network)
    assert not any(module._forward_hooks for module in network.modules())


@pytest.mark.usefixtures("tiny")
def test_a_run_stops_with_the_checkpoint_of_the_epoch_before(tmp_path, monkeypatch):
    """One bad image in the second epoch: the step and the layer that made infinity of a finite input are named."""
    recipe = tiny_recipe(mixup=0.5)
    good = tiny_data(recipe)

    class Spoilt:
        def __len__(self):
            return len(good.train)

        def epoch(self, number):
            for index, (images, labels) in enumerate(good.train.epoch(number)):
                if (number, index) == (2, 1):
                    images[3, 0, 2, 2] = 3e38
                    images[-4] = images[3]  # its partner in mixup
                yield images, labels

    monkeypatch.setattr(data, "open_data", lambda *_: type(good)(Spoilt(), good.test, CLASSES, 2, None))
    with pytest.raises(
        NonFiniteError, match=r"epoch 2, at step 2 of 4: the output of (stem|whiten) .* checkpoint is that of epoch 1"
    ):
        run.train(recipe, tmp_path, quiet=True)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1
    assert json.loads((tmp_path / "run.json").read_text())["result"] is None
    assert torch.load(tmp_path / "last.pt", weights_only=True)["history"][-1]["epoch"] == 1


@pytest.mark.usefixtures("tiny")
def test_a_run_that_is_never_finite_has_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "create", lambda *_, num_classes, **__: network_with(forward=True))
    with pytest.raises(
        NonFiniteError, match=r"epoch 1, at step 1 of 4: the output of block\.3 \(Bad\).* no checkpoint yet"
    ):
        run.train(tiny_recipe(), tmp_path, quiet=True)
    assert not (tmp_path / "last.pt").exists()
