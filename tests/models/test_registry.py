"""Networks by name."""

import json
import re
from pathlib import Path

import pytest
import torch

import matroot
from matroot import models
from matroot.models._arguments import keywords

from .networks import REDUCED, build


def test_create_is_the_function_of_that_name():
    for name, reduced in REDUCED.items():
        with torch.device("meta"):
            created, built = models.create(name, 4, **reduced.options), getattr(models, name)(4, **reduced.options)
        assert created.arguments == built.arguments
        assert created.num_classes == 4


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resnet18_dnb", r"did you mean 'resnet18_dbn'\? Valid names are"),
        ("resnet50_gpc", r"did you mean 'resnet50_gcp'\? Valid names are"),
        ("x", "valid names are"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, advice):
    with pytest.raises(ValueError, match=f"unknown network '{name}'; {advice}") as error:
        models.create(name)
    for valid in models.list_models():
        assert valid in str(error.value)


def test_an_unknown_preset_is_answered_with_all():
    with pytest.raises(ValueError, match=r"unknown preset 'x'; valid names are default, mpa-lya, .*, baseline"):
        models.create("resnet18_dbn", preset="x")


def test_an_unknown_option_is_answered_with_those_of_the_network():
    names = "num_classes, preset, method, gradient, in_channels, width"
    with pytest.raises(TypeError, match=f"resnet18_dbn has no option 'last_stride'; valid names are {names}"):
        models.create("resnet18_dbn", last_stride=1)
    with pytest.raises(TypeError, match=r"no option 'num_clases'; did you mean 'num_classes'\? Valid names are"):
        models.create("resnet18_dbn", num_clases=3)


def test_what_does_not_fit_is_said():
    with pytest.raises(ValueError, match="'power-iteration' has no inverse root"):
        models.create("resnet18_dbn", preset="pi")
    with pytest.raises(ValueError, match="gradient 'eigen-taylor'"):
        models.create("resnet50_gcp", preset="svd-taylor", method="pade")
    with pytest.raises(ValueError, match="last_stride must be 1 or 2, got 3"):
        models.create("resnet50_gcp", last_stride=3, width=4)
    with pytest.raises(ValueError, match="num_classes must be 0 or more, got -1"):
        models.create("resnet18_dbn", -1, width=4)


@pytest.mark.parametrize(
    ("name", "size"), [("resnet18_dbn", "width"), ("resnet50_gcp", "in_channels"), ("so_vit_7", "depth")]
)
def test_sizes_below_one_are_refused(name, size):
    with pytest.raises(ValueError, match=f"{size} must be at least 1, got 0"):
        models.create(name, **{size: 0})


def test_set_preset_changes_nothing_where_it_does_not_fit():
    model = build("resnet18_dbn", "ns")
    with pytest.raises(ValueError, match="'power-iteration' has no inverse root"):
        models.set_preset(model, "pi")
    assert model.bn1.method == matroot.NewtonSchulz()
    assert model.arguments["preset"] == "ns"


def test_set_preset_asks_the_network():
    model = build("resnet50_gcp")

    def refuse(preset):
        raise ValueError(f"not {preset}")

    vars(model)["require_preset"] = refuse
    with pytest.raises(ValueError, match="not ns"):
        models.set_preset(model, "ns")
    assert model.pool.method == "auto"


@pytest.mark.parametrize(
    "options",
    [
        {"method": matroot.Pade(degree=7, form="polynomial"), "gradient": matroot.Lyapunov(iterations=9)},
        {"method": "newton-schulz", "gradient": "unrolled"},
        {"method": matroot.Minimax(condition=1e4)},
        {"preset": "svd-taylor", "gradient": matroot.EigenTaylor(degree=3)},
    ],
)
def test_arguments_survive_json(options):
    model = build("resnet50_gcp", **options)
    again = models.create(**keywords(json.loads(json.dumps(model.arguments))))
    assert (again.pool.method, again.pool.gradient) == (model.pool.method, model.pool.gradient)
    assert again.arguments == model.arguments


def test_defaults_are_recorded():
    """So that a file means the same network after a default has changed."""
    with torch.device("meta"):
        arguments = models.create("resnet50_gcp").arguments
    assert arguments.keys() >= {"num_classes", "preset", "in_channels", "image_size", "last_stride", "reduce_to"}
    assert arguments["num_classes"] == 1000


def test_the_page_has_every_network_and_its_size():
    page = (Path(__file__).parents[2] / "docs/models.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+)\D\d+ \| (\d+) \| ([\d.]+) M \|$", page, re.MULTILINE)
    assert [name for name, *_ in rows] == models.list_models()
    for name, size, classes, millions in rows:
        network = models._registry.find(name)
        with torch.device("meta"):
            model = models.create(name)
        assert int(size) == network.images.size
        assert int(classes) == model.num_classes == network.num_classes
        assert millions == f"{sum(parameter.numel() for parameter in model.parameters()) / 1e6:.2f}"
