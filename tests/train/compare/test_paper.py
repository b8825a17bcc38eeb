"""The paper's tables as data."""

import pytest

import matroot
from matroot.train.paper import COLUMNS, nearest_column, presets_of, published


def test_presets_are_those_of_the_library():
    for column in COLUMNS:
        assert set(column.cells) <= set(matroot.presets()), column.title


def test_no_column_stands_twice():
    keys = [(column.recipe, column.model, column.dataset) for column in COLUMNS]
    assert len(keys) == len(set(keys)) == 12


@pytest.mark.parametrize(
    ("where", "value", "measure", "top5"),
    [
        (("dbn", "resnet18_dbn", "cifar10", "mpa-lya"), 4.39, "error", None),
        (("dbn", "resnet18_dbn", "cifar100", "svd-clip"), 21.60, "error", None),
        (("dbn", "resnet50_dbn", "cifar100", "ns"), 19.39, "error", None),
        (("gcp", "resnet50_gcp", "imagenet", "svd-pade"), 77.33, "accuracy", 93.49),
        (("finegrained", "resnet50_gcp", "cars", "ns"), 91.7, "accuracy", None),
        (("video", "tea50_tcp", "hmdb51", "mpa-lya"), 74.05, "accuracy", 93.99),
        (("sovit", "so_vit_10", "imagenet", "pi"), 77.96, "accuracy", 94.18),
    ],
)
def test_cells(where, value, measure, top5):
    cell = published(*where)
    assert cell is not None
    assert (cell.value, cell.measure, cell.top5) == (value, measure, top5)


def test_there_is_no_figure_for_what_the_paper_did_not_run():
    assert published("dbn", "resnet18_dbn", "cifar10", "default") is None
    assert published("dbn", "resnet18_dbn", "digits", "mpa-lya") is None
    assert published("gcp", "resnet18_gcp", "imagenet", "mpa-lya") is None


def test_a_cell_says_what_it_is():
    assert str(published("dbn", "resnet18_dbn", "cifar10", "mpa-lya")) == (
        "error 4.39 ± 0.09 % (ResNet-18 on CIFAR-10, 5 runs)"
    )
    assert str(published("gcp", "resnet50_gcp", "imagenet", "ns")) == (
        "accuracy 77.19 %, top-5 93.40 % (ResNet-50 on ImageNet)"
    )


@pytest.mark.parametrize(
    ("recipe", "model", "dataset", "title"),
    [
        ("dbn", "resnet18_dbn", "cifar100", "ResNet-18 on CIFAR-100"),
        ("dbn", "resnet50_dbn", "cifar10", "ResNet-18 on CIFAR-10"),  # the data weigh more than the network
        ("dbn", "resnet18_dbn", "digits", "ResNet-18 on CIFAR-10"),
        ("sovit", "so_vit_10", "cifar100", "So-ViT-10 on ImageNet"),
        ("gcp", "resnet18_gcp", "cub40", "ResNet-50 on ImageNet"),
    ],
)
def test_the_nearest_column(recipe, model, dataset, title):
    assert nearest_column(recipe, model, dataset).title == title


def test_presets_of_a_recipe():
    assert presets_of("gcp") == ("svd-taylor", "svd-pade", "ns", "mpa-lya")
    assert set(presets_of("dbn")) == set(matroot.presets()) - {"svd", "pi"}
    with pytest.raises(KeyError):
        presets_of("nonsense")
