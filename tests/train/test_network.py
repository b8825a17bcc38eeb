"""The network of a recipe: options, frozen layers, presets."""

from dataclasses import replace

import pytest
import torch

from matroot import models
from matroot._terminal import CommandError
from matroot.train import network

from .tiny import CHANNELS, CLASSES, TinyNetwork, tiny_data, tiny_recipe


@pytest.fixture
def calls(monkeypatch):
    """The keywords ``create`` is called with."""
    found = []

    def create(name, **keywords):
        found.append((name, keywords))
        return TinyNetwork(CLASSES)

    monkeypatch.setattr(models, "create", create, raising=False)
    return found


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"model": "resnet50_gcp"}, {"image_size": 8}),
        ({"model": "tea50_tcp"}, {}),
        ({"model": "so_vit_7", "drop_path": 0.1}, {"image_size": 8, "drop_path": 0.1}),
        ({"model": "resnet18_dbn", "published_init": True}, {"published_init": True}),
        ({"model": "resnet18_dbn", "whitening_eps": 0.5}, {"published_init": False, "eps": 0.5}),
    ],
)
def test_networks_get_the_options_they_take(fields, options, calls):
    recipe = tiny_recipe(preset="ns", **fields)
    network.build(recipe, replace(tiny_data(recipe), clips=recipe.model == "tea50_tcp"))
    shared = {"num_classes": CLASSES, "preset": "ns", "in_channels": CHANNELS}
    assert calls == [(fields["model"], shared | options)]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "resnet18_dbn", "drop_path": 0.1}, "drop_path"),
        ({"model": "so_vit_7", "published_init": True}, "init"),
        ({"model": "so_vit_7", "whitening_eps": 0.5}, "whitening_eps"),
    ],
)
def test_options_of_other_networks_are_errors(fields, words, calls):
    with pytest.raises(CommandError, match=words):
        network.build(tiny_recipe(**fields), tiny_data(tiny_recipe()))
    assert calls == []


@pytest.mark.parametrize(("batch_size", "image_size", "works"), [(1, 8, False), (2, 8, True), (1, 9, True)])
def test_a_batch_of_one_needs_positions(batch_size, image_size, works):
    """The maps of this network end with an eighth of the image's side, rounded up."""
    recipe = tiny_recipe(model="resnet18_dbn", batch_size=batch_size, image_size=image_size)
    data = tiny_data(recipe)
    if not works:
        with pytest.raises(CommandError, match=r"batch_size 1 with an image_size of 8 .* batch_size of 2"):
            network.build(recipe, data)
        return
    built = network.build(recipe, data)
    assert built.training
    built(torch.randn(batch_size, CHANNELS, image_size, image_size))


def test_frozen_normalisations_take_a_batch_of_one(monkeypatch):
    monkeypatch.setattr(models, "create", lambda *_, **options: TinyNetwork(CLASSES))
    recipe = tiny_recipe(batch_size=1, image_size=3)  # of which the last convolution leaves one position
    with pytest.raises(CommandError, match="batch_size 1"):
        network.build(recipe, tiny_data(recipe))
    network.build(replace(recipe, freeze_norms=True), tiny_data(recipe))


@pytest.mark.parametrize(
    ("model", "clips", "message"),
    [
        ("tea50_tcp", False, "tiny has images; tea50_tcp takes clips"),
        ("resnet18_dbn", True, "tiny has clips; resnet18_dbn takes images"),
    ],
)
def test_data_of_another_kind_are_an_error(model, clips, message, calls):
    recipe = tiny_recipe(model=model)
    with pytest.raises(CommandError, match=message):
        network.build(recipe, replace(tiny_data(recipe), clips=clips))
    assert calls == []


def test_initial_weights_are_loaded(calls, monkeypatch):
    loaded = []
    monkeypatch.setattr(models, "load_weights", lambda model, path: loaded.append((model, path)), raising=False)
    built = network.build(tiny_recipe(initial_weights="some.safetensors"), tiny_data(tiny_recipe()))
    assert loaded == [(built, "some.safetensors")]


def test_frozen_norms_are_all_but_the_first(calls):
    """Neither their statistics nor their weights change; the decorrelated layer is none of them."""
    recipe = tiny_recipe(freeze_norms=True)
    built = network.build(recipe, tiny_data(recipe))
    network.training_mode(built, recipe)
    first, second = built.block[0], built.block[3]
    assert built.training
    assert built.whiten.training
    assert (first.training, first.weight.requires_grad) == (True, True)
    assert (second.training, second.weight.requires_grad, second.bias.requires_grad) == (False, False, False)
    before = second.running_mean.clone()
    built(torch.randn(4, CHANNELS, 8, 8))
    assert torch.equal(second.running_mean, before)
    assert not torch.equal(first.running_mean, torch.zeros(8))


def test_nothing_is_frozen_otherwise(calls):
    built = network.build(tiny_recipe(), tiny_data(tiny_recipe()))
    network.training_mode(built.eval(), tiny_recipe())
    assert all(module.training for module in built.modules())
    assert all(parameter.requires_grad for parameter in built.parameters())


def test_first_preset_has_its_epochs():
    recipe = tiny_recipe(preset="svd-pade", first_preset="ns", first_preset_epochs=2)
    assert [network.preset_of_epoch(recipe, epoch) for epoch in (1, 2, 3)] == ["ns", "ns", "svd-pade"]
    assert network.preset_of_epoch(tiny_recipe(), 1) == "default"


@pytest.mark.usefixtures("tiny")
def test_a_preset_that_cannot_be_set_is_an_error(monkeypatch):
    def refuse(*_):
        raise ValueError("the baseline is another network")

    monkeypatch.setattr(models, "set_preset", refuse, raising=False)
    with pytest.raises(CommandError, match="first_preset: the baseline"):
        network.set_preset(TinyNetwork(CLASSES), "baseline")
