"""Training steps in CUDA graphs."""

import pytest
import torch

from matroot.train import run
from matroot.train.average import Average
from matroot.train.optimiser import create_optimizer
from matroot.train.seeding import convolutions, seed_generators
from matroot.train.step import EagerStep, GraphStep

from ..train.outcome import assert_same, outcome
from ..train.tiny import CLASSES, TinyNetwork, install, tiny_data, tiny_recipe

RECIPES = {
    "sgd": {"clip_norm": 1.0, "classifier_lr_factor": 5.0},
    "adamw": {"optimizer": "adamw", "lr": 0.01, "mixup": 0.8, "label_smoothing": 0.1, "ema": 0.8},
    "bfloat16": {"precision": "bfloat16", "channels_last": True},
    "presets": {"preset": "mpa-lya", "first_preset": "ns", "first_preset_epochs": 2, "freeze_norms": True},
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    install(monkeypatch)
    with convolutions():
        yield


def make_step(kind, dropout=0.0, **fields):
    recipe = tiny_recipe(**fields)
    torch.manual_seed(0)
    network = TinyNetwork(CLASSES).cuda()
    network.dropout.p = dropout
    average = None if recipe.ema is None else Average(network, recipe.ema)
    return kind(network, create_optimizer(network, recipe), recipe, average)


def batches(step, count):
    return list(tiny_data(step.recipe, count, "cuda").train.epoch(1))


def weights(step):
    return torch.cat([parameter.detach().flatten().clone() for parameter in step.model.parameters()])


@pytest.mark.parametrize("fields", [{}, {"clip_norm": 0.5}, {"optimizer": "adamw", "lr": 0.01, "ema": 0.8}])
def test_a_graph_is_the_eager_step(fields):
    """Over 20 steps and rates that change. The kernels are the same; a product may be split in another way, and SGD
    carries its rounding on: 1e-3 of the weights is far below what one step changes.
    """
    found = []
    for kind in (EagerStep, GraphStep):
        step = make_step(kind, **fields)
        start = weights(step)
        for index, batch in enumerate(batches(step, 20)):
            step(*batch, step.recipe.lr / (1 + index % 4))
        assert (weights(step) - start).norm() > 0.02 * start.norm()
        found.append((weights(step), step.totals.read(), *step.model.buffers()))
        if step.average is not None:
            with step.average.applied():
                found[-1] += (weights(step),)
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)


def test_a_graph_sees_the_rate():
    step = make_step(GraphStep)
    first, *others = batches(step, 8)
    for batch in others:
        step(*batch, 0.1)
    before = weights(step)
    step(*first, 0.0)
    assert torch.equal(weights(step), before)
    step(*first, 0.1)
    assert not torch.equal(weights(step), before)


def test_a_graph_draws_new_numbers_and_obeys_the_seed():
    """The same batch at rate 0: only dropout changes the loss. Ordinary steps draw what replays draw."""
    step = make_step(GraphStep, dropout=0.5)
    batch = batches(step, 1)[0]

    def losses(step, count):
        found = []
        for _ in range(count):
            step.totals.start_epoch()
            step(*batch, 0.0)
            found.append(step.totals.read()[0].item())
        return found

    seed_generators(1, 1)
    whole = losses(step, 9)
    assert len(set(whole)) == 9
    seed_generators(1, 1)
    assert losses(step, 9) == whole
    seed_generators(1, 2)
    assert losses(step, 1)[0] not in whole


def test_a_batch_of_another_shape_is_an_ordinary_step():
    step = make_step(GraphStep)
    for images, labels in batches(step, 6):
        step(images, labels, 0.1)
    images, labels = batches(step, 1)[0]
    before = weights(step)
    step(images[:7], labels[:7], 0.1)
    assert not torch.equal(weights(step), before)
    step(images, labels, 0.1)
    assert step.totals.read()[2].item() == 16 * 7 + 7


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_weights_stay_those_before_a_replay_that_is_not_finite(optimizer):
    step = make_step(GraphStep, optimizer=optimizer, lr=0.01)
    for batch in batches(step, 6):
        step(*batch, 0.01)
    before = weights(step)
    images, labels = batches(step, 1)[0]
    step(torch.full_like(images, torch.inf), labels, 0.01)
    step(images, labels, 0.01)
    assert step.totals.read()[3:].tolist() == [6, 1]
    assert torch.equal(weights(step), before)


@pytest.mark.parametrize("name", RECIPES)
def test_a_resumed_run_is_the_same_bit_for_bit(name, tmp_path):
    """Its first steps are ordinary ones where the other run replays."""
    recipe = tiny_recipe(epochs=4, **RECIPES[name])
    assert run.train(recipe, tmp_path / "whole", quiet=True, graph=True) is not None
    for stop_after in (1, 2, None):
        run.train(recipe, tmp_path / "parts", quiet=True, graph=True, resume=True, stop_after=stop_after)
    assert_same(outcome(tmp_path / "parts"), outcome(tmp_path / "whole"))


def test_a_run_without_graphs_finds_the_same(tmp_path):
    """To rounding, see above."""
    found = []
    for graph in (False, True):
        run.train(tiny_recipe(), tmp_path / str(graph), quiet=True, graph=graph)
        found.append([row["train_loss"] for row in outcome(tmp_path / str(graph))[0]["history"]])
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_decompositions_run_without_a_graph_and_say_so(tmp_path, capsys):
    assert run.train(tiny_recipe(preset="svd-lya", epochs=1), tmp_path) is not None
    assert "not captured in a CUDA graph: whiten (DecorrelatedBatchNorm2d)" in capsys.readouterr().out


def test_float16_scales_its_loss(tmp_path):
    recipe = tiny_recipe(precision="float16")
    for stop_after in (1, None):
        result = run.train(recipe, tmp_path, quiet=True, resume=True, stop_after=stop_after)
    assert result is not None
    rows = outcome(tmp_path)[0]["history"]
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
