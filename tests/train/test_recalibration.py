"""Statistics that are measured anew."""

import copy

import torch
from torch import nn

from matroot.train import network
from matroot.train.recalibration import recalibrate

from .tiny import CLASSES, TinyNetwork, tiny_data, tiny_recipe

CPU = torch.device("cpu")


def moved_network():
    """One whose running averages are far from its features."""
    torch.manual_seed(0)
    model = TinyNetwork(CLASSES)
    for buffer in model.buffers():
        if buffer.is_floating_point():
            nn.init.normal_(buffer, 5.0)
    return model


def batches(count=3):
    return list(tiny_data(tiny_recipe(), count).train.epoch(1))


def test_statistics_are_means_over_the_batches():
    model = moved_network().double()
    data = [(images.double(), labels) for images, labels in batches()]
    recalibrate(model, tiny_recipe(), data, CPU)
    features = [model.stem(images) for images, _ in data]
    means = torch.stack([x.mean((0, 2, 3)) for x in features])
    # To rounding in float64.
    torch.testing.assert_close(model.whiten.running_mean, means.mean(0), rtol=1e-12, atol=1e-12)
    roots = []
    for x, mean in zip(features, means, strict=True):
        rows = (x - mean[:, None, None]).transpose(0, 1).flatten(1)
        values, vectors = torch.linalg.eigh(rows @ rows.mT / rows.shape[1] + model.whiten.eps * torch.eye(8))
        roots.append(vectors @ torch.diag(values.rsqrt()) @ vectors.mT)
    torch.testing.assert_close(model.whiten.running_whitening[0], torch.stack(roots).mean(0), rtol=1e-9, atol=1e-9)
    assert model.block[3].num_batches_tracked == len(data)


def test_nothing_else_changes():
    model = moved_network()
    before = copy.deepcopy(model)
    recalibrate(model, tiny_recipe(), batches(), CPU)
    assert not any(module.training for module in model.modules())
    assert [model.whiten.momentum, model.block[0].momentum] == [before.whiten.momentum, before.block[0].momentum]
    for found, expected in zip(model.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_frozen_normalisations_keep_their_statistics():
    recipe = tiny_recipe(freeze_norms=True)
    model = moved_network()
    before = copy.deepcopy(model)
    network.training_mode(model, recipe)
    recalibrate(model, recipe, batches(), CPU)
    assert not torch.equal(model.block[0].running_mean, before.block[0].running_mean)
    torch.testing.assert_close(model.block[3].running_mean, before.block[3].running_mean, rtol=0, atol=0)


def test_dropout_plays_no_part():
    found = []
    for seed in (1, 2):
        model = moved_network()
        torch.manual_seed(seed)
        recalibrate(model, tiny_recipe(), batches(), CPU)
        found.append(model.block[3].running_var)
    torch.testing.assert_close(*found, rtol=0, atol=0)
