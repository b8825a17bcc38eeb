"""Distillations: the same bits however often they were interrupted, and the files they leave."""

import json
import math

import pytest
import torch
from PIL import Image
from safetensors import safe_open

from matroot._terminal import CommandError
from matroot.style import load
from matroot.style.distillation import checkpoint
from matroot.style.distillation.__main__ import main
from matroot.style.distillation.batches import Batches
from matroot.style.distillation.pictures import Pictures, read_pictures
from matroot.style.distillation.run import Options, distil
from matroot.style.distillation.step import TERMS, Distiller, learning_rate, term_weight
from matroot.style.distillation.teacher import load_teacher

from .tiny import tiny_recipe


def run(files, out=None, **options):
    recipe = options.pop("recipe", tiny_recipe())
    given = Options(device="cpu", log_every=2, save_every=2, **options)
    return distil(recipe, files.teacher, files.photos, files.paintings, out or files.out, given)


def state(folder):
    return torch.load(folder / "last.pt", weights_only=True)


def figures(history):
    """Without times."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in history]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_resumed_run_has_the_bits_of_one_that_never_stopped(precision, files, tmp_path):
    recipe = tiny_recipe(precision=precision)
    whole = run(files, recipe=recipe)
    parts = tmp_path / "parts"
    for k in range(3):
        part = run(files, parts, recipe=recipe, resume=k > 0, time_limit=1e-9)
        assert part.finished == (k == 2)
    assert whole.finished
    assert figures(part.history) == figures(whole.history)
    one, other = state(files.out), state(parts)
    assert one["state"]["done"] == other["state"]["done"] == 6
    for name in ("network", "average"):
        for key, tensor in one["state"][name].items():
            assert torch.equal(tensor, other["state"][name][key]), key
    for key, moments in one["state"]["optimizer"]["state"].items():
        for name, tensor in moments.items():
            assert torch.equal(tensor, other["state"]["optimizer"]["state"][key][name]), (key, name)


def test_resuming_a_finished_run_changes_nothing(files):
    first = run(files)
    again = run(files, resume=True)
    assert again.finished
    assert again.history == first.history


def test_files_of_a_run(files):
    summary = run(files, training_data="blurred noise", licence="none needed")
    assert sorted(path.name for path in (files.out / "sheets").iterdir()) == ["000002.png", "000004.png", "000006.png"]
    with Image.open(files.out / "sheets" / "000006.png") as picture:
        # Contents, reproductions and two strengths of two styles; three contents below the styles.
        assert picture.size == (6 * 32, 4 * 32)
    lines = [json.loads(line) for line in (files.out / "metrics.jsonl").read_text().splitlines()]
    assert lines == summary.history
    assert [line["step"] for line in lines] == [2, 4, 6]
    assert all(math.isfinite(line[name]) for line in lines for name in TERMS)


def test_exported_weights_are_the_average_and_say_where_they_are_from(files):
    summary = run(files, training_data="blurred noise", licence="none needed")
    with safe_open(summary.weights, framework="pt") as file:
        about = file.metadata()
    assert (about["training_data"], about["licence"], about["steps"]) == ("blurred noise", "none needed", "6")
    assert about["command"].startswith("python -m matroot.style.distillation")
    assert str(files.out.parent) not in "".join(about.values())
    assert json.loads(about["recipe"])["crop"] == 32
    average = state(files.out)["state"]["average"]
    loaded = load(summary.weights).state_dict()
    assert loaded.keys() == average.keys()
    # Stored in half precision.
    assert all(torch.equal(tensor, average[name].half().float()) for name, tensor in loaded.items())


def distiller(files, **fields):
    recipe = tiny_recipe(**fields)
    photos, paintings = (read_pictures(source, recipe.crop) for source in (files.photos, files.paintings))
    batches = Batches(Pictures.of([*photos, *paintings]), len(photos), recipe)
    return Distiller(recipe, load_teacher(files.teacher), batches, torch.device("cpu"))


@pytest.mark.parametrize(("other", "name", "share"), [("pixels", "style", 0.6), ("style", "pixels", 0.85)])
def test_what_is_trained_for_is_learned(other, name, share, files):
    """Forty steps leave 0.2 to 0.3 of the style's distance and 0.6 to 0.7 of the reproduction's, over four seeds."""
    alone = {"content": 0.0, "features": 0.0, "imitation": 0.0, "variation": 0.0, other: 0.0}
    trained = distiller(files, **alone, steps=40, lr=3e-3, channels=(8, 8, 8))
    judge = Batches(trained.batches.pictures, trained.batches.photos, tiny_recipe(pairs=16, seed=1)).step(0)
    before = terms(trained, judge)
    for _ in range(40):
        trained.step()
    assert terms(trained, judge)[name] < share * before[name]
    assert trained.read()["skipped"] == 0


@torch.no_grad()
def terms(trained, pairs):
    return dict(zip(TERMS, trained._terms(pairs).tolist(), strict=True))


def test_gradients_pass_through_the_roots(files):
    """Without the terms of the reproduction, the style's statistics alone lead from style images to the loss."""
    trained = distiller(files, content=0.0, pixels=0.0, features=0.0, imitation=0.0, variation=0.0)
    before = [parameter.clone() for parameter in trained.network.parameters()]
    trained.step()
    changed = [not torch.equal(a, b) for a, b in zip(before, trained.network.parameters(), strict=True)]
    assert all(changed)


def test_a_step_that_is_not_finite_changes_no_weight(files):
    trained = distiller(files)
    trained.step()
    trained.read()
    before = [parameter.clone() for parameter in trained.network.parameters()]
    trained.batches.pictures.pixels.zero_()
    trained.teacher.encoder["2"].bias.fill_(math.nan)
    trained.step()
    assert all(torch.equal(a, b) for a, b in zip(before, trained.network.parameters(), strict=True))
    assert trained.read()["skipped"] == 1


def test_a_run_without_a_finite_step_ends_with_a_message(files):
    state = torch.load(files.teacher, weights_only=True)
    state["encoder"]["2.bias"].fill_(math.nan)
    torch.save(state, files.teacher)
    with pytest.raises(CommandError, match="no step of the last 2 up to step 2 has a finite gradient"):
        run(files)
    assert not (files.out / "last.pt").exists()


def test_the_average_is_exported_and_follows_the_weights(files):
    trained = distiller(files, ema=0.5)
    start = [parameter.clone() for parameter in trained.network.parameters()]
    trained.step()
    for mean, first, now in zip(trained.average.parameters(), start, trained.network.parameters(), strict=True):
        torch.testing.assert_close(mean, first + 0.9 * (now - first))  # (1 + 0)/(10 + 0) is the first decay
    assert not any(parameter.requires_grad for parameter in trained.average.parameters())


def test_schedules():
    recipe = tiny_recipe(steps=100, warmup=10, lr=1.0, final_lr=0.1, imitation=4.0, imitated=0.5)
    rates = [learning_rate(recipe, step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1
    assert rates[55] == pytest.approx(0.55)
    assert rates[100] == pytest.approx(0.1)
    assert [term_weight(recipe, "imitation", step) for step in (0, 25, 50, 99)] == [4, 2, 0, 0]
    assert term_weight(tiny_recipe(imitated=0.0), "imitation", 0) == 0
    assert term_weight(recipe, "style", 99) == recipe.style


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"enlarged": 0.5}, "--enlarged must be a number from 1 on"),
        ({"final_lr": -1.0}, "--final-lr must be a number that is not negative"),
        ({"exchanged": 1.5}, r"--exchanged must be in \[0, 1\]"),
        ({"crop": 8}, "--crop must be at least 16 pixels"),
        ({"channels": (4, 4)}, "--channels must be three positive numbers"),
        ({"lr": math.nan}, "--lr must be a number"),
    ],
)
def test_recipes_out_of_range(fields, message):
    with pytest.raises(CommandError, match=message):
        tiny_recipe(**fields)


def test_a_folder_is_neither_overwritten_nor_resumed_with_another_recipe(files):
    run(files)
    with pytest.raises(CommandError, match="--resume goes on with it"):
        run(files)
    with pytest.raises(CommandError, match=r"crop is 32 there and 48 here"):
        run(files, recipe=tiny_recipe(crop=48), resume=True)
    (files.out / "last.pt").write_bytes(b"damaged")
    with pytest.raises(CommandError, match=r"last\.pt is damaged, or no checkpoint"):
        run(files, resume=True)
    torch.save({"format": "other"}, files.out / "last.pt")
    with pytest.raises(CommandError, match=checkpoint.FORMAT):
        run(files, resume=True)


def test_an_unknown_device_is_named(files):
    with pytest.raises(CommandError, match="--device abacus cannot be used"):
        distil(tiny_recipe(), files.teacher, files.photos, files.paintings, files.out, Options(device="abacus"))


def test_the_file_names_its_sources_without_their_folders(files, monkeypatch):
    monkeypatch.setattr(
        "sys.argv", ["x", "--photos", *files.photos, "--licence", "MIT/BSD", "--photos", "/a/b.zip:c/d"]
    )
    with safe_open(run(files).weights, framework="pt") as file:
        about = file.metadata()
    assert about["training_data"] == "photographs: photos; paintings: paintings"
    assert about["command"].endswith("--photos photos --licence MIT/BSD --photos b.zip:c/d")


def test_the_command(files, capsys):
    arguments = ["--teacher", str(files.teacher), "--photos", *files.photos, "--paintings", *files.paintings]
    small = [
        "--steps",
        "3",
        "--crop",
        "32",
        "--pairs",
        "2",
        "--channels",
        "4,4,4",
        "--device",
        "cpu",
        "--log-every",
        "1",
    ]
    assert main([*arguments, "--out", str(files.out), *small]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("finished, ")
    assert [line.split()[0] for line in printed[-4:-1]] == ["1", "2", "3"]
    assert main([*arguments, "--out", str(files.out), *small]) == 2
    assert "--resume goes on with it" in capsys.readouterr().err
    assert main([*arguments[:-1], "nowhere", "--out", str(files.out / "other"), *small]) == 2
    assert "there is no nowhere" in capsys.readouterr().err


def test_what_a_killed_process_left_is_removed(files):
    left = [files.out / "last.pt.01234567.partial", files.out / "sheets" / "000002.png.01234567.partial"]
    left[1].parent.mkdir(parents=True)
    for path in left:
        path.touch()
    assert run(files).finished
    assert not any(path.exists() for path in left)
