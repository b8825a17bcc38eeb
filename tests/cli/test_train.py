"""``matroot train``: which recipe and options a command line means."""

import json
import re
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from matroot._cli import main
from matroot._cli import train as command
from matroot._terminal import CommandError
from matroot.models import list_models, preset_names
from matroot.train.data import list_datasets
from matroot.train.recipe import Recipe
from matroot.train.recipes import RECIPES

DIGITS = RECIPES["dbn"]["digits"]
FINISHED = SimpleNamespace(best_accuracy=0.98765, best_epoch=3, epochs=8)
"""A result."""


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The calls of the training loop, which trains nothing here."""
    calls = []

    def train(recipe, out, **options):
        calls.append(SimpleNamespace(recipe=recipe, out=out, options=options))
        if options["stop_after"] is not None:
            return None
        out.mkdir(parents=True, exist_ok=True)
        (out / "best.safetensors").touch()
        return FINISHED

    monkeypatch.setattr("matroot.train.run.train", train)
    monkeypatch.chdir(tmp_path)
    return calls


def trained(runs, *arguments):
    assert main.main(["train", *arguments]) == 0
    return runs[-1]


def test_without_options_digits_are_trained(runs):
    run = trained(runs, "dbn")
    assert run.recipe == DIGITS
    assert run.out == Path("runs/dbn-digits-resnet18_dbn-default-seed0")
    assert run.options == {
        "data": None,
        "device": None,
        "resume": False,
        "workers": 2,
        "quiet": False,
        "stop_after": None,
        "graph": None,
        "fsdp": False,
    }


@pytest.mark.parametrize("name", RECIPES)
def test_variants(name, runs, monkeypatch):
    monkeypatch.setattr("matroot.train.checks.check", lambda recipe: None)  # weights to start from are not there
    for variant, recipe in RECIPES[name].items():
        assert trained(runs, name, "--variant", variant).recipe == recipe
        assert trained(runs, name, f"--variant={variant}").recipe == recipe
    assert trained(runs, name).recipe == next(iter(RECIPES[name].values()))


def test_fields_are_flags(runs):
    flags = "--epochs 60 --lr 3e-2 --clip-norm 5 --milestones 20 40 --schedule steps --no-channels-last --compile"
    run = trained(runs, "dbn", "--variant", "short", *flags.split(), "--preset", "mpa-lya", "--seed", "3")
    assert run.recipe == replace(
        RECIPES["dbn"]["short"],
        epochs=60,
        lr=0.03,
        clip_norm=5.0,
        milestones=(20, 40),
        schedule="steps",
        channels_last=False,
        compile=True,
        preset="mpa-lya",
        seed=3,
    )
    assert run.out == Path("runs/dbn-cifar10-resnet18_dbn-mpa-lya-seed3")


def test_options_of_the_run(runs):
    flags = "--data d --out o --resume --device cuda:1 --workers 5 --stop-after 2 --quiet --no-graph --fsdp"
    run = trained(runs, "sovit", *flags.split())
    assert (run.recipe, run.out) == (RECIPES["sovit"]["short"], Path("o"))
    assert run.options == {
        "data": Path("d"),
        "device": "cuda:1",
        "resume": True,
        "workers": 5,
        "quiet": True,
        "stop_after": 2,
        "graph": False,
        "fsdp": True,
    }
    assert trained(runs, "dbn", "--graph").options["graph"] is True


def test_weights_that_are_missing_may_be_left_out(runs, tmp_path, capsys):
    """The word that the message names is one that the command line and files take."""
    assert main.main(["train", "finegrained"]) == 2
    assert "name the weights of another run, or None to start from random ones" in capsys.readouterr().err
    assert trained(runs, "finegrained", "--initial-weights", "None").recipe.initial_weights is None
    (tmp_path / "mine.toml").write_text('initial_weights = "None"\n')
    assert trained(runs, "finegrained", "--config", "mine.toml").recipe.initial_weights is None


def test_flags_win_over_a_file_and_a_file_over_the_variant(runs, tmp_path):
    (tmp_path / "mine.toml").write_text("epochs = 3\nlr = 0.5\n")
    run = trained(runs, "dbn", "--config", "mine.toml", "--lr", "0.25")
    assert run.recipe == replace(DIGITS, epochs=3, lr=0.25)


def test_the_recipe_of_a_run_is_run_again(runs, tmp_path):
    recipe = replace(DIGITS, seed=9, epochs=2)
    (tmp_path / "run.json").write_text(json.dumps({"format": "matroot-run 1", "recipe": asdict(recipe)}))
    assert trained(runs, "dbn", "--config", "run.json").recipe == recipe


def test_what_runs_is_said(runs, capsys):
    trained(runs, "dbn", "--variant", "short", "--preset", "mpa-lya", "--epochs", "60")
    out = capsys.readouterr().out
    assert "dbn, variant short: resnet18_dbn on cifar10, preset mpa-lya" in out
    assert "preset mpa-lya (was default), epochs 60 (was 30)" in out
    assert "4.39 % error, ResNet-18 on CIFAR-10" in out
    trained(runs, "dbn", "--quiet")
    assert capsys.readouterr().out == ""


def test_the_result_is_said(runs, capsys):
    trained(runs, "dbn", "--out", "o")
    expected = "best test accuracy 98.77%, in epoch 3 of 8\nweights: o/best.safetensors\n"
    assert capsys.readouterr().out.endswith(expected)
    trained(runs, "dbn", "--stop-after", "2")
    assert "best" not in capsys.readouterr().out


@pytest.mark.parametrize("flags", [(), ("--quiet",)])
def test_weights_that_are_lost_are_an_error(flags, runs, capsys, monkeypatch):
    monkeypatch.setattr("matroot.train.run.train", lambda *_, **__: FINISHED)
    assert main.main(["train", "dbn", "--out", "o", *flags]) == 2
    assert "o/best.safetensors is missing: the weights of epoch 3, the best one" in capsys.readouterr().err


def test_one_process_of_many_speaks(runs, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    trained(runs, "dbn")
    assert capsys.readouterr().out == ""


def test_nothing_is_said_of_the_paper_where_it_has_no_figure(runs, capsys):
    trained(runs, "dbn")
    out = capsys.readouterr().out
    assert "paper" not in out
    assert "changed" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dbm"], "unknown recipe 'dbm'; did you mean 'dbn'?"),
        (["dbn", "--variant", "publishd"], "unknown variant of dbn 'publishd'; did you mean 'published'?"),
        (["--lr", "1", "dbn"], "the recipe comes first, got --lr"),
        (["dbn", "--dataset", "digit"], "unknown dataset 'digit'; did you mean 'digits'?"),
        (["dbn", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (["dbn", "--config", "missing.toml"], "missing.toml cannot be read"),
        (["dbn", "--graph", "--no-graph"], "exclude each other"),
        (["dbn", "--workers", "-1"], "workers must be at least 0, got -1"),
        (["dbn", "--stop-after", "0"], "stop-after must be at least 1, got 0"),
        (
            ["dbn", "--warmup-epochs", "2"],
            "warmup_epochs 2 is for schedule steps and cosine; the schedule is one-cycle",
        ),
        (["dbn", "--cooldown-epochs", "2"], "cooldown_epochs 2 is for schedule cosine; the schedule is one-cycle"),
        (["dbn", "--final-lr", "0.1"], "final_lr 0.1 is for schedule cosine"),
        (["dbn", "--milestones", "2", "4"], "milestones 2 4 is for schedule steps"),
        (["dbn", "--frames", "4"], "frames 4 is for clips; resnet18_dbn takes images"),
        (["dbn", "--optimizer", "adamw", "--momentum", "0.5"], "momentum 0.5 is for optimizer sgd"),
        (["dbn", "--preset", "baseline", "--whitening-eps", "0.1"], "whitening_eps 0.1 is for decorrelated layers"),
        (["dbn", "--preset", "baseline", "--published-init"], "published_init True is for decorrelated layers"),
    ],
)
def test_wrong_calls_are_one_message(arguments, message, runs, capsys):
    assert main.main(["train", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not runs


@pytest.mark.parametrize("text", ["warmup_epochs = 2", '{"warmup_epochs": 2}'])
def test_a_file_with_what_does_nothing_is_refused(text, runs, tmp_path, capsys):
    name = "mine.json" if text.startswith("{") else "mine.toml"
    (tmp_path / name).write_text(text)
    assert main.main(["train", "dbn", "--config", name]) == 2
    assert "warmup_epochs 2 is for schedule steps and cosine" in capsys.readouterr().err
    assert not runs


@pytest.mark.parametrize(
    "arguments",
    [
        ["dbn", "--variant", "published", "--preset", "baseline"],
        ["dbn", "--variant", "published", "--schedule", "one-cycle"],
        ["sovit", "--schedule", "one-cycle"],
        ["sovit", "--schedule", "one-cycle", "--warmup-epochs", "0"],
        ["sovit", "--optimizer", "sgd", "--momentum", "0.5"],
    ],
)
def test_what_a_variant_has_may_do_nothing(arguments, runs, tmp_path):
    """And what turns that off; the recipe of such a run can be run again."""
    recipe = trained(runs, *arguments).recipe
    (tmp_path / "again.json").write_text(json.dumps({"format": "matroot-run 1", "recipe": asdict(recipe)}))
    assert trained(runs, arguments[0], "--config", "again.json").recipe == recipe


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batchsize", "3"], "--batch-size"),
        (["--epochs", "many"], "--epochs"),
        (["--precision", "float8"], "bfloat16"),
        (["--variant"], "--variant"),
        (["digits"], "digits"),
    ],
)
def test_wrong_flags_name_what_is_meant(arguments, words, runs, capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["train", "dbn", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not runs


def help_of(capsys, monkeypatch, *arguments):
    """The words of a help page, without its boxes."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as stopped:
        main.main(["train", *arguments, "--help"])
    assert stopped.value.code == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help_has_the_values_of_the_variant(capsys, monkeypatch):
    text = help_of(capsys, monkeypatch, "dbn", "--variant", "published")
    assert "usage: matroot train dbn" in text
    for words in ("--batch-size INT", "(default: 350)", "(default: 100 200 300)", "--no-channels-last", "--resume"):
        assert words in text
    assert "--no-resume" not in text


def test_help_describes_every_option(capsys, monkeypatch):
    text = help_of(capsys, monkeypatch, "gcp")
    for option in (*fields(Recipe), *fields(command.TrainOptions)):
        assert f"--{option.name.replace('_', '-')}" in text
    assert not re.findall(r"(?:[A-Z]{3,}|[}\]]|--[\w-]+) \(default", text)


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--help"], 0), (["-h"], 0)])
def test_without_a_recipe_the_usage_is_printed(arguments, status, capsys):
    assert main.main(["train", *arguments]) == status
    printed = capsys.readouterr()
    assert "usage: matroot train RECIPE" in (printed.err if status else printed.out)


@pytest.mark.parametrize("width", [80, 100])
def test_everything_is_listed(width, capsys):
    command.show_recipes(Console(width=width))
    text = capsys.readouterr().out
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    words = set(re.findall(r"[\w-]+", text))
    for name, variants in RECIPES.items():
        assert {name, *variants} <= words
    assert {*list_models(), *list_datasets(), *preset_names()} <= words


@pytest.mark.parametrize("columns", ["20", "80"])
def test_list_is_a_flag(columns, capsys, monkeypatch):
    """The same on a narrow terminal, where no column is left out."""
    monkeypatch.setenv("COLUMNS", columns)
    assert main.main(["train", "--list"]) == 0
    out = capsys.readouterr().out
    assert "matroot train dbn" in out
    assert re.search(r"variant +data set +network +pixels +epochs +batch", out)


@pytest.mark.parametrize(("error", "status"), [(CommandError("no data"), 2), (KeyboardInterrupt(), 130)])
def test_exit_status_of_a_run_that_ends_early(error, status, runs, monkeypatch, capsys):
    def train(*arguments, **options):
        raise error

    monkeypatch.setattr("matroot.train.run.train", train)
    assert main.main(["train", "dbn"]) == status
    assert capsys.readouterr().err == ("no data\n" if status == 2 else "")


@pytest.mark.parametrize("package", ["tyro", "timm", "torchvision", "safetensors"])
def test_a_missing_package_names_the_extra(package, monkeypatch, capsys):
    def missing(name, *rest):
        raise ModuleNotFoundError(f"No module named '{package}'", name=f"{package}.something")

    monkeypatch.setattr(main, "import_module", missing)
    assert main.main(["train", "dbn"]) == 2
    assert capsys.readouterr().err == f'matroot train needs {package}: pip install "matroot[training]"\n'


def test_without_tyro(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tyro", None)
    for name in ("train", "recipe_arguments"):
        monkeypatch.delitem(sys.modules, f"matroot._cli.{name}", raising=False)
    assert main.main(["train", "dbn"]) == 2
    assert 'pip install "matroot[training]"' in capsys.readouterr().err
