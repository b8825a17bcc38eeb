"""Style exchange on a GPU."""

import pytest
import torch

from matroot.train.seeding import convolutions
from matroot.train.style.run import Cadence, build, train
from matroot.train.style.step import LOSSES, GraphStep, Step
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


def make_step(kind, **fields):
    recipe = small_recipe(width=8, lr=1e-4, **fields)
    return kind(*(network.to(CUDA) for network in build(recipe)), recipe)


def weights(step):
    networks = step.network, step.discriminators
    return torch.cat([p.detach().flatten() for network in networks for p in network.parameters()])


@pytest.mark.parametrize(
    "fields", [{}, {"preset": "ns", "clip_norm": None}, {"preset": "baseline"}], ids=["default", "ns", "baseline"]
)
def test_a_graph_is_the_eager_step(fields):
    """Over 8 steps, five of them replayed, with rates that change. Kernels are the same but for the order of sums, and
    for sums of atomics; Adam follows the sign of gradients that are all rounding.
    """
    found = []
    with convolutions():
        for kind in (Step, GraphStep):
            step = make_step(kind, **fields)
            start = weights(step)
            rates = [1e-4 / (1 + k % 3) for k in range(8)]
            rows = [step(pictures(2 * k).cuda(), pictures(2 * k + 1).cuda(), lr) for k, lr in enumerate(rates)]
            found.append(torch.stack(rows))
            # every update of Adam moves most weights by about its rate
            assert (weights(step) - start).abs().median() > 1e-4
    torch.testing.assert_close(found[1], found[0], rtol=0.02, atol=0.02)


def test_bfloat16_is_captured():
    with convolutions():
        eager, graph = (make_step(kind, precision="bfloat16", channels_last=True) for kind in (Step, GraphStep))
        for k in range(8):
            batch = pictures(2 * k).cuda(), pictures(2 * k + 1).cuda()
            torch.testing.assert_close(graph(*batch, 1e-4), eager(*batch, 1e-4), rtol=0.1, atol=0.1)


def test_a_graph_sees_the_rate():
    step = make_step(GraphStep)
    batch = pictures(0).cuda(), pictures(1).cuda()
    for _ in range(6):
        step(*batch, 1e-4)
    before = weights(step)
    step(*batch, 0.0)
    assert torch.equal(weights(step), before)
    step(*batch, 1e-4)
    assert not torch.equal(weights(step), before)


@pytest.mark.parametrize("graphs", [(True, True), (False, True), (True, False)])
def test_a_run_is_resumed(graphs, tmp_path):
    """With graphs or without, whatever it began with; each call with graphs replays three of its six steps."""
    data = cyclegan(tmp_path / "pictures")
    recipe = small_recipe(iterations=12, lr=1e-4, precision="bfloat16", channels_last=True)

    def go(name, **options):
        cadence = Cadence(report=6, sample=6)
        return train(recipe, tmp_path / name, data=data, quiet=True, resume=True, cadence=cadence, **options)

    whole = go("whole", graph=False)
    assert go("parts", time_limit=1e-9, graph=graphs[0]) is None
    parts = go("parts", graph=graphs[1])
    assert parts is not None
    assert parts.iterations == 12
    for name in LOSSES:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=0.1, abs=0.1)


@pytest.mark.parametrize("preset", ["default", "svd-taylor"])
def test_presets_that_are_not_captured_say_so(preset, tmp_path, capsys):
    data = cyclegan(tmp_path / "pictures")
    assert train(small_recipe(preset=preset), tmp_path / "run", data=data) is not None
    said = "steps are not captured in a CUDA graph: photo.decoder.transforms.0 (WhitenColor) decomposes"
    assert (said in capsys.readouterr().out) == (preset == "svd-taylor")


def test_transforms_are_timed_in_graphs_where_they_can_be():
    """Of so many values that their memory is unmapped as soon as nobody holds it, which replays would not survive."""
    found = time_transforms(("default", "mtp-lya", "svd-taylor"), CUDA, Shape(4, 64, 54, 13), time_budget=0.05)
    assert not found.failures
    for times in (found.transforms, found.roots):
        modes = {preset: time.mode for preset, time in times.items()}
        assert modes == {"default": "graph", "mtp-lya": "graph", "svd-taylor": "eager"}
