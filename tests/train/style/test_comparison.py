"""Times of transforms, scores of runs, and the file and table of both."""

import json
import sys

import pytest
import torch
from rich.console import Console

import matroot
from matroot import models
from matroot._terminal import CommandError
from matroot.models.lpips import LPIPS
from matroot.train.compare.results import StepTime
from matroot.train.style.comparison import PUBLISHED, StyleRequest, compare_style
from matroot.train.style.pictures import as_network_input, as_unit_range, open_pictures
from matroot.train.style.run import Cadence, train
from matroot.train.style.scoring import lpips_of_photos, read_run, score_run
from matroot.train.style.transform_timing import Shape, TransformTimes, time_transforms, timed_presets

from .small import cyclegan, small_recipe

SMALL = Shape(batch=2, channels=4, content=5, style=3)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Pictures, a run of two steps of them, and weights of LPIPS: the random ones a network starts from."""
    data = cyclegan(tmp_path_factory.mktemp("pictures"))
    run = tmp_path_factory.mktemp("runs") / "ns"
    recipe = small_recipe(iterations=2, preset="ns")
    train(recipe, run, data=data, device="cpu", quiet=True, cadence=Cadence(1, 2))
    weights = tmp_path_factory.mktemp("weights") / "lpips.pth"
    torch.save(_lpips_file(), weights)
    return data, run, weights


def _lpips_file():
    torch.manual_seed(0)
    metric = LPIPS()
    content = {}
    for k, place in enumerate((0, 3, 6, 8, 10)):
        content[f"features.{place}.weight"] = metric.convolutions[k].weight.data
        content[f"features.{place}.bias"] = metric.convolutions[k].bias.data
        content[f"lpips.lin{k}.weight"] = torch.rand_like(metric.heads[k])
    return content


def console():
    return Console(width=100, highlight=False)


def test_presets_with_an_inverse_root_are_timed():
    assert timed_presets() == ("default", *(name for name in matroot.presets() if name != "pi"))
    assert set(PUBLISHED) < set(timed_presets())


def test_times():
    found = time_transforms(("default", "mpa-lya", "svd-taylor"), CPU, SMALL, time_budget=0.01)
    assert found.shape == "2 x 4 x 4, content 5x5, style 3x3"
    assert not found.failures
    for times in (found.transforms, found.roots):
        assert list(times) == ["default", "mpa-lya", "svd-taylor"]
        assert all(time.mode == "eager" and 0 < time.low <= time.median <= time.high for time in times.values())


def test_what_is_timed(monkeypatch):
    """Ten transforms: ten inverse roots of the content's matrices and ten roots of the style's, backward too."""
    calls = []

    def in_turns(works, device, time_budget):
        calls.extend(works)
        works["roots default"]()
        return {}, {"transforms default": "RuntimeError: no memory"}

    monkeypatch.setattr("matroot.train.style.transform_timing.milliseconds_in_turns", in_turns)
    roots = {"sqrtm": matroot.sqrtm, "invsqrtm": matroot.invsqrtm}
    seen = {name: [] for name in roots}
    for name, root in roots.items():

        def spied(A, *arguments, name=name, root=root, **options):
            seen[name].append(A)
            return root(A, *arguments, **options)

        monkeypatch.setattr(matroot, name, spied)
    found = time_transforms(("default",), CPU, SMALL)
    assert calls == ["transforms default", "roots default"]
    assert [len(matrices) for matrices in seen.values()] == [10, 10]
    assert all(A.shape == (2, 4, 4) and A.requires_grad for matrices in seen.values() for A in matrices)
    assert found.failures == {"default": "RuntimeError: no memory"}


@pytest.mark.parametrize("work", ["transforms default", "roots default"])
def test_the_gradient_reaches_the_roots(work, monkeypatch):
    """An upstream gradient that is the same at all positions does not: deviations from the mean sum to zero. What
    reaches them then is rounding, below 1e-4 here; that of a real backward pass is of order one."""
    monkeypatch.setattr(
        "matroot.train.style.transform_timing.milliseconds_in_turns", lambda works, *_: (works[work]() or {}, {})
    )
    sizes = []
    for place in (matroot, sys.modules["matroot.nn.whiten_color"]):
        for name in ("sqrtm", "invsqrtm"):
            root = getattr(place, name)

            def spied(A, *arguments, root=root, **options):
                found = root(A, *arguments, **options)
                found.register_hook(lambda gradient: sizes.append(gradient.norm().item()))
                return found

            monkeypatch.setattr(place, name, spied)
    time_transforms(("default",), CPU, SMALL)
    assert len(sizes) == 20
    assert min(sizes) > 0.1


def test_score(folders):
    """The mean over test photos, each in the style of one test painting."""
    data, run, weights = folders
    metric = matroot.models.lpips.load_lpips(weights)
    score = score_run(run, metric, data, CPU)
    pictures = open_pictures("folder", 32, data, CPU)
    network = models.load(run / "last.safetensors")
    with torch.no_grad():
        photos, paintings = (as_network_input(domain.test) for domain in (pictures.photos, pictures.paintings))
        expected = metric(as_unit_range(photos), as_unit_range(network.to_paintings(photos, paintings)))
    assert (score.preset, score.dataset, score.steps, score.photos) == ("ns", "folder", 2, 2)
    assert score.lpips == pytest.approx(expected.mean().item(), rel=1e-5)
    assert score.std == pytest.approx(expected.std().item(), rel=1e-3)
    assert score.lpips > 0
    # more photos than paintings: styles begin again
    one = type(pictures)(pictures.photos, type(pictures.paintings)(paintings, pictures.paintings.test[:1]), "")
    assert len(lpips_of_photos(network, one, metric)) == 2


def test_runs_that_are_none(tmp_path, folders):
    with pytest.raises(CommandError, match=r"run.json: No such file .*; expected a run of matroot train style"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "matroot-run 1", "recipe": {"model": "resnet18_dbn"}}')
    with pytest.raises(CommandError, match="is no run of matroot train style with weights"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_bytes((folders[1] / "run.json").read_bytes())
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(CommandError, match="is no run of matroot train style with weights"):
        read_run(tmp_path)


def test_file_and_table(folders, tmp_path, capsys, monkeypatch):
    data, run, weights = folders
    times = {name: StepTime(12.5, 12.0, 13.0, "eager") for name in ("default", "mpa-lya")}
    found = TransformTimes("a processor", "4 x 256 x 256", times, times, {"svd": "RuntimeError: no memory"})
    monkeypatch.setattr("matroot.train.style.comparison.time_transforms", lambda *_: found)
    out = tmp_path / "new/compare-style.json"
    request = StyleRequest(("default", "mpa-lya", "svd"), (run,), out, "matroot compare style", weights, data, "cpu")
    assert compare_style(request, console()) == 0
    content = json.loads(out.read_text())
    assert content["format"] == "matroot-compare-style 1"
    assert content["timing"]["transforms"]["mpa-lya"]["median"] == 12.5
    assert content["scores"][0]["preset"] == "ns"
    assert content["published"]["mpa-lya"] == {"lpips": 0.5615, "milliseconds": 69}
    printed = capsys.readouterr().out
    cells = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.strip()}
    assert cells["mpa-lya"] == ["12.5", "12.5", "69", "-", "0.5615"]
    assert cells["default"] == ["12.5", "12.5", "-", "-", "-"]
    assert cells["ns"] == ["-", "-", "94", f"{content['scores'][0]['lpips']:.4f}", "0.5578"]
    assert "svd was not timed: RuntimeError: no memory" in printed
    assert "over 2 test photos of folder" in printed


def test_a_folder_that_cannot_be_made_is_found_before_anything_is_timed(tmp_path, monkeypatch):
    monkeypatch.setattr("matroot.train.style.comparison.time_transforms", lambda *_: pytest.fail("timed"))
    (tmp_path / "file").touch()
    request = StyleRequest(("default",), (), tmp_path / "file" / "out.json", "", device="cpu")
    with pytest.raises(CommandError, match=r"cannot write .*out\.json: (File exists|Not a directory)"):
        compare_style(request, console())


def test_the_table_is_printed_though_the_file_cannot_be_written(tmp_path, monkeypatch, capsys, fill_disk):
    times = {"default": StepTime(12.5, 12.0, 13.0, "eager")}
    found = TransformTimes("a processor", "4 x 256 x 256", times, times)
    monkeypatch.setattr("matroot.train.style.comparison.time_transforms", lambda *_: found)
    fill_disk()
    with pytest.raises(CommandError, match="No space left on device"):
        compare_style(StyleRequest(("default",), (), tmp_path / "out.json", "", device="cpu"), console())
    assert "12.5" in capsys.readouterr().out


def test_scores_need_weights(folders, tmp_path):
    request = StyleRequest((), (folders[1],), tmp_path / "out.json", "")
    with pytest.raises(CommandError, match="--weights-lpips names the file"):
        compare_style(request, console())
    assert not (tmp_path / "out.json").exists()


def test_published_figures():
    """LPIPS and milliseconds of the paper's table."""
    expected = {"svd-taylor": (0.5276, 447), "svd-pade": (0.5422, 445), "ns": (0.5578, 94), "mtp-lya": (0.5489, 41)}
    found = {name: (one.lpips, one.milliseconds) for name, one in PUBLISHED.items()}
    assert found == expected | {"mpa-lya": (0.5615, 69)}
