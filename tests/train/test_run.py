"""The folder of a run, its messages, and how it is stopped."""

import json
import math
import os
import signal
import sys
import threading
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from matroot._checkpoint import CheckpointError
from matroot._terminal import CommandError, exit_status
from matroot.train import checkpoint, run
from matroot.train.evaluation import Scores
from matroot.train.folder import Folder, Result
from matroot.train.interruption import Interruption
from matroot.train.loop import Trainer
from matroot.train.nonfinite import NonFiniteError
from matroot.train.progress import Reporter

from .tiny import CLASSES, TinyNetwork, tiny_data, tiny_recipe

pytestmark = pytest.mark.usefixtures("tiny")


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_writes_its_folder(tmp_path):
    recipe = tiny_recipe(epochs=6)
    out = tmp_path / "runs" / "first"
    result = run.train(recipe, out, quiet=True)
    assert {path.name for path in out.iterdir()} == {
        *("run.json", "metrics.jsonl", "last.pt", "best.safetensors", "tensorboard", ".lock")
    }
    description = json.loads((out / "run.json").read_text())
    assert (description["format"], description["recipe"]["milestones"]) == ("matroot-run 1", [])
    assert description["environment"]["torch"] == torch.__version__
    assert Result(**description["result"]) == result
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert set(rows[0]) == {
        *("epoch", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "test_top5"),
        *("seconds", "images_per_second", "step_ms"),
    }
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
    accuracies = [row["test_accuracy"] for row in rows]
    assert result.best_accuracy == max(accuracies) > 1.5 / CLASSES
    assert result.best_epoch == accuracies.index(max(accuracies)) + 1
    assert (result.final_accuracy, result.stand_in) == (accuracies[-1], "noise stands in for pictures")


@pytest.mark.parametrize("ema", [None, 0.5])
def test_the_best_network_has_the_best_accuracy(ema, tmp_path):
    """The averaged one, where weights are averaged; checked by an evaluation written here."""
    recipe = tiny_recipe(epochs=5, ema=ema)
    result = run.train(recipe, tmp_path, quiet=True)
    network = TinyNetwork(CLASSES)
    network.load_state_dict(load_file(tmp_path / "best.safetensors"))
    network.eval()
    hits = torch.cat([network(images).argmax(1) == labels for images, labels in tiny_data(recipe).test.epoch(0)])
    assert hits.float().mean().item() == pytest.approx(result.best_accuracy)


def test_result_of_a_history():
    rows = [
        {"epoch": e, "test_accuracy": a, "test_top5": 0.9, "seconds": 2.0, "step_ms": ms}
        for e, a, ms in ((1, 0.5, 90.0), (2, 0.75, 10.0), (3, 0.75, 12.0), (4, 0.7, 11.0))
    ]
    assert Result.of(rows, None) == Result(4, 0.75, 2, 0.7, 0.9, 8.0, 11.0, None)
    assert Result.of(rows[:1], None).step_ms == 90.0


def test_a_folder_with_a_run_is_left_alone(tmp_path):
    run.train(tiny_recipe(epochs=1), tmp_path, quiet=True)
    before = snapshot(tmp_path)
    with pytest.raises(CommandError, match="--resume"):
        run.train(tiny_recipe(epochs=1), tmp_path, quiet=True)
    assert snapshot(tmp_path) == before


def test_a_finished_run_returns_its_result(tmp_path, monkeypatch):
    recipe = tiny_recipe(epochs=1)
    result = run.train(recipe, tmp_path, quiet=True)
    before = snapshot(tmp_path)
    monkeypatch.setattr(run, "Trainer", None)
    assert run.train(recipe, tmp_path, resume=True) == result
    assert snapshot(tmp_path) == before


def test_a_run_that_lacks_only_its_result_gets_it(tmp_path):
    """Killed between checkpoint and description."""
    recipe = tiny_recipe(epochs=2)
    result = run.train(recipe, tmp_path, quiet=True)
    Folder(tmp_path, recipe).describe(None)
    assert run.train(recipe, tmp_path, quiet=True, resume=True) == result


def test_resume_without_a_checkpoint_starts(tmp_path, capsys):
    assert run.train(tiny_recipe(epochs=1), tmp_path, resume=True) is not None
    assert "no checkpoint yet: the run starts with epoch 1" in capsys.readouterr().out


@pytest.mark.parametrize("finished", [False, True])
def test_another_recipe_is_refused(finished, tmp_path):
    run.train(tiny_recipe(epochs=2), tmp_path, quiet=True, stop_after=None if finished else 1)
    before = snapshot(tmp_path)
    with pytest.raises(CheckpointError, match="epochs is 2 there and 3 here; seed is 0 there and 4 here"):
        run.train(tiny_recipe(epochs=3, seed=4), tmp_path, quiet=True, resume=True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["last.pt", "run.json"])
def test_damaged_files_are_named_and_left_alone(name, tmp_path):
    run.train(tiny_recipe(), tmp_path, quiet=True, stop_after=1)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:100])
    before = snapshot(tmp_path)
    with pytest.raises(CommandError, match=f"{name} is damaged"):
        run.train(tiny_recipe(), tmp_path, quiet=True, resume=True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("recipe", [[], 5, None])
def test_a_description_whose_recipe_is_none_is_damaged(recipe, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"recipe": recipe, "result": None}))
    with pytest.raises(CommandError, match=r"run\.json is damaged"):
        run.train(tiny_recipe(), tmp_path, quiet=True, resume=True)


@pytest.mark.parametrize("finished", [False, True])
def test_a_field_that_is_younger_than_the_run_had_its_default(finished, tmp_path):
    recipe = tiny_recipe(epochs=2)
    run.train(recipe, tmp_path, quiet=True, stop_after=None if finished else 1)
    description = json.loads((tmp_path / "run.json").read_text())
    del description["recipe"]["drop_path"], description["recipe"]["milestones"]
    (tmp_path / "run.json").write_text(json.dumps(description))
    found = checkpoint.load(tmp_path / "last.pt")
    checkpoint.save(tmp_path / "last.pt", replace(found, recipe=description["recipe"]))
    with pytest.raises(CheckpointError, match=r"drop_path is 0\.0 there and 0\.5 here"):
        run.train(replace(recipe, drop_path=0.5), tmp_path, quiet=True, resume=True)
    assert run.train(recipe, tmp_path, quiet=True, resume=True).epochs == 2


@pytest.mark.parametrize("best", [1, 2])
@pytest.mark.parametrize("ema", [None, 0.5])
def test_the_last_weights_stand_in_for_missing_ones_where_they_are_the_best(best, ema, tmp_path, capsys, monkeypatch):
    """Of two epochs that were trained; what is lost is said, and never replaced by other weights."""
    accuracies = iter((0.9, 0.8, 0.7) if best == 1 else (0.8, 0.9, 0.7))
    monkeypatch.setattr(Trainer, "evaluate", lambda *_: Scores(1.0, next(accuracies), 1.0))
    recipe, path = tiny_recipe(ema=ema), tmp_path / "best.safetensors"
    run.train(recipe, tmp_path, quiet=True, stop_after=2)
    before = path.read_bytes()
    path.unlink()
    assert run.train(recipe, tmp_path, resume=True).best_epoch == best
    said = f"{path} is missing: the weights of epoch 1, the best one, are lost"
    assert path.exists() == (best == 2) == (said not in capsys.readouterr().out)
    assert best == 1 or path.read_bytes() == before


@pytest.mark.parametrize("best", [1, 2])
def test_a_finished_run_gets_its_best_weights_back_where_they_are_the_last(best, tmp_path, monkeypatch):
    accuracies = iter((0.9, 0.8) if best == 1 else (0.8, 0.9))
    monkeypatch.setattr(Trainer, "evaluate", lambda *_: Scores(1.0, next(accuracies), 1.0))
    recipe, path = tiny_recipe(epochs=2), tmp_path / "best.safetensors"
    result = run.train(recipe, tmp_path, quiet=True)
    before = snapshot(tmp_path)
    path.unlink()
    assert run.train(recipe, tmp_path, quiet=True, resume=True) == result
    if best == 1:
        del before[path.relative_to(tmp_path)]
    assert snapshot(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="cannot write"):
        run.train(tiny_recipe(), tmp_path / "file" / "run", quiet=True)


def test_what_is_printed(tmp_path, capsys):
    run.train(tiny_recipe(preset="ns", first_preset="mpa-lya", first_preset_epochs=1, epochs=2), tmp_path, device="cpu")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "838 parameters on cpu, 4 steps an epoch",
        "noise stands in for pictures",
        *("roots by mpa-lya from epoch 1 on", "epoch 1/2", "roots by ns from epoch 2 on", "epoch 2/2"),
    ]
    assert all(words in lines[3] for words in ("loss", "test", "lr", "images/s"))


def test_every_step_is_reported_on_a_cpu(tmp_path, monkeypatch):
    """There a step may take seconds, and looking at it costs nothing."""
    reported = []
    monkeypatch.setattr(Reporter, "step", lambda _, *given: reported.append(given))
    run.train(tiny_recipe(epochs=2), tmp_path)
    assert [given[:2] for given in reported] == 4 * [(1, 1)] + 4 * [(2, 1)]
    assert all(math.isfinite(number) for given in reported for number in given)


def test_slow_steps_have_a_time_left(monkeypatch, capsys):
    """Of 4 x 50 steps 50 are done in each minute, which is how rarely a GPU is asked."""
    now = 0.0
    monkeypatch.setattr("rich.console.monotonic", lambda: now)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Reporter(4, 50, quiet=False) as reporter:
        for epoch in (1, 2):
            now += 60
            reporter.step(epoch, 50, 1.0, 0.5, 100.0)
    assert "02:00" in capsys.readouterr().out


def test_quiet_prints_nothing(tmp_path, capsys):
    run.train(tiny_recipe(epochs=1), tmp_path, quiet=True)
    assert capsys.readouterr().out == ""


def test_graph_on_a_cpu_is_an_error(tmp_path):
    with pytest.raises(CommandError, match="--graph: there are no CUDA graphs on cpu"):
        run.train(tiny_recipe(), tmp_path, device="cpu", quiet=True, graph=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_a_run_and_say_how_to_go_on(number, tmp_path, monkeypatch, capsys):
    ordinary, handlers = Trainer.evaluate, [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    def interrupted(self, epoch):
        if epoch == 2:
            os.kill(os.getpid(), number)
        return ordinary(self, epoch)

    monkeypatch.setattr(Trainer, "evaluate", interrupted)
    assert exit_status(lambda: run.train(tiny_recipe(), tmp_path) and 0) == 130
    assert f"stopped after epoch 1; --resume goes on with {tmp_path}" in capsys.readouterr().out
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_signals_wait_for_files(tmp_path, monkeypatch, capsys):
    """Ctrl-C while the checkpoint is written: it is finished, and so is the epoch."""
    ordinary = Folder.save

    def interrupted(self, *state):
        os.kill(os.getpid(), signal.SIGINT)
        ordinary(self, *state)

    monkeypatch.setattr(Folder, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.train(tiny_recipe(), tmp_path)
    assert "stopped after epoch 1" in capsys.readouterr().out
    assert Folder(tmp_path, tiny_recipe()).load().history[-1]["epoch"] == 1


def test_in_a_thread_signals_are_those_of_the_program():
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def enter():
        with Interruption() as interruption, interruption.deferred():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [before]


def test_tensorboard_has_the_metrics(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    recipe = tiny_recipe(epochs=3)
    for _ in range(3):
        run.train(recipe, tmp_path, quiet=True, resume=True, stop_after=1)
    events = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [event.step for event in events.Scalars("test/accuracy")] == [1, 2, 3]
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx([r["train_loss"] for r in rows])


def test_without_tensorboard_a_run_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert run.train(tiny_recipe(epochs=1), tmp_path, quiet=True).epochs == 1
    assert not (tmp_path / "tensorboard").exists()


def test_nothing_is_compiled_to_measure_statistics(tmp_path, monkeypatch):
    """Norms that take the mean of some batches in the place of a running one would be compiled once more."""
    compiled, first = [], torch.nn.Module.compile

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: first(module, backend=backend))
    counts = []
    for recalibrate in (0, 2):
        torch._dynamo.reset()
        compiled.clear()
        recipe = tiny_recipe(compile=True, recalibrate=recalibrate, epochs=2)
        run.train(recipe, tmp_path / str(recalibrate), quiet=True)
        counts.append(len(compiled))
    assert counts[0] == counts[1] > 0


def test_statistics_that_cannot_be_measured_anew_end_a_run_with_a_sentence(tmp_path, monkeypatch):
    trained = Trainer.evaluate

    def diverged(self, epoch):
        with torch.no_grad():
            self.network.stem.weight.fill_(3e38)  # finite, and nothing after it is
        return trained(self, epoch)

    monkeypatch.setattr(Trainer, "evaluate", diverged)
    with pytest.raises(NonFiniteError, match=r"recalibrate after epoch 1: .* layer 'whiten'"):
        run.train(tiny_recipe(recalibrate=2, epochs=1), tmp_path, quiet=True)
