"""Style exchange on a GPU."""

import pytest
import torch

from matroot.train.style.run import Cadence, build, train
from matroot.train.style.step import Step
from matroot.train.style.transform_timing import Shape, time_transforms

from ..train.style.small import cyclegan, small_recipe

CUDA = torch.device("cuda")


def pictures(seed):
    return torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def losses(device, **fields):
    recipe = small_recipe(width=8, **fields)
    network, judges = build(recipe)
    step = Step(network.to(device), judges.to(device), recipe)
    return step(pictures(0).to(device), pictures(1).to(device), 1e-3).cpu()


@pytest.mark.parametrize("preset", ["default", "mpa-lya", "svd-taylor", "baseline"])
def test_losses_are_those_of_the_processor(preset):
    """TensorFloat-32 of convolutions, ten bits, and transforms that stretch their rounding."""
    torch.testing.assert_close(losses(CUDA, preset=preset), losses("cpu", preset=preset), rtol=0.02, atol=0.02)


def test_bfloat16():
    """Eight bits of convolutions; roots are those of float32."""
    found = losses(CUDA, precision="bfloat16", channels_last=True)
    torch.testing.assert_close(found, losses("cpu"), rtol=0.1, atol=0.1)


def test_a_run_is_resumed(tmp_path):
    data = cyclegan(tmp_path / "pictures")
    recipe = small_recipe(precision="bfloat16", channels_last=True)

    def go(**options):
        return train(recipe, tmp_path / "run", data=data, quiet=True, resume=True, cadence=Cadence(2, 4), **options)

    assert go(time_limit=1e-9) is None
    result = go()
    assert result is not None
    assert result.iterations == 6


def test_transforms_are_timed_in_graphs_where_they_can_be():
    found = time_transforms(("default", "mtp-lya", "svd-taylor"), CUDA, Shape(2, 16, 8, 6), time_budget=0.05)
    assert not found.failures
    for times in (found.transforms, found.roots):
        modes = {preset: time.mode for preset, time in times.items()}
        assert modes == {"default": "graph", "mtp-lya": "graph", "svd-taylor": "eager"}
