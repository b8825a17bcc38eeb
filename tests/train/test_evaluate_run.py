"""Evaluation of a run that is there."""

import json

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from matroot._cli import main
from matroot._terminal import CommandError
from matroot.train.data.views import Views
from matroot.train.distributed import start
from matroot.train.evaluate_run import evaluate_run
from matroot.train.evaluation import Scores, evaluate
from matroot.train.folder import Folder
from matroot.train.run import train

from .style.small import small_recipe
from .tiny import CLASSES, TinyNetwork, install, tiny_recipe


@pytest.fixture
def run(monkeypatch, tmp_path):
    install(monkeypatch)

    def load(path):
        network = TinyNetwork(CLASSES)
        network.load_state_dict(load_file(path))
        return network

    monkeypatch.setattr("matroot.models.load", load, raising=False)
    train(tiny_recipe(), tmp_path / "run", device="cpu", quiet=True)
    return tmp_path / "run"


def test_it_finds_what_the_run_found(run, capsys):
    best = json.loads((run / "run.json").read_text())["result"]["best_accuracy"]
    assert evaluate_run(run, device="cpu").accuracy == best
    assert main.main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert f"top-1 {best:.2%}" in capsys.readouterr().out


@pytest.mark.parametrize("rank", ["0", "1"])
def test_one_process_speaks(rank, monkeypatch, capsys):
    monkeypatch.setattr("matroot._cli.evaluate.evaluate_run", lambda *_, **__: Scores(0.5, 0.75, 1.0))
    monkeypatch.setenv("RANK", rank)
    assert main.main(["evaluate", "run"]) == 0
    assert capsys.readouterr().out == (
        "run  top-1 75.00%  top-5 100.00%  loss 0.5000  one view\n" if rank == "0" else ""
    )


def test_a_folder_without_a_run(tmp_path, capsys):
    with pytest.raises(CommandError, match=r"no run\.json"):
        evaluate_run(tmp_path)
    assert main.main(["evaluate", str(tmp_path)]) == 2
    assert main.main(["evaluate", str(tmp_path), "--crops", "2"]) == 2
    assert "crops" in capsys.readouterr().err


def test_a_run_of_style_exchange(tmp_path):
    Folder(tmp_path, small_recipe()).describe(None)
    with pytest.raises(CommandError, match=f"compare style --runs {tmp_path} scores it"):
        evaluate_run(tmp_path)


class Batch:
    """Three examples of which views differ: logits are the pixels."""

    def __init__(self, views):
        self.images = torch.randn(3, views, 6, 1, 1, generator=torch.Generator().manual_seed(0))
        self.labels = torch.tensor([0, 3, 5])

    def epoch(self, number):
        yield self.images, self.labels


def test_probabilities_of_views_are_averaged():
    batch = Batch(views=4)
    scores = evaluate(nn.Flatten(), batch, tiny_recipe(), start("cpu"), views=4)
    mean = batch.images.flatten(2).softmax(2).mean(1)
    torch.testing.assert_close(scores.loss, float(-mean[torch.arange(3), batch.labels].log().mean()))
    assert scores.accuracy == float((mean.argmax(1) == batch.labels).double().mean())


def test_views_are_passed_to_the_data(run, monkeypatch):
    """tiny data know of no views: the data set is asked for them."""
    asked = []

    def open_data(recipe, root, device, rank, world, workers, views):
        asked.append(views)
        raise CommandError("enough")

    monkeypatch.setattr("matroot.train.data.open_data", open_data)
    with pytest.raises(CommandError, match="enough"):
        evaluate_run(run, Views(10, 3), device="cpu")
    assert asked == [Views(10, 3)]
