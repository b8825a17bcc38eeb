"""``matroot train style`` and ``matroot compare style``: what they read, refuse and pass on."""

import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from matroot._cli import main
from matroot._cli.compare_style import StyleCompareOptions
from matroot._cli.train_style import StyleOptions
from matroot.train.style.recipe import NAME, STYLE_RECIPES, StyleRecipe
from matroot.train.style.run import Cadence

VARIANTS = STYLE_RECIPES[NAME]


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The calls of training, which trains nothing here."""
    calls = []

    def train(recipe, out, **options):
        calls.append(SimpleNamespace(recipe=recipe, out=out, options=options))
        finished = options["time_limit"] is None
        return SimpleNamespace(iterations=7, step_ms=12.3, cycle=0.5) if finished else None

    monkeypatch.setattr("matroot.train.style.run.train", train)
    monkeypatch.chdir(tmp_path)
    return calls


@pytest.fixture
def requests(monkeypatch):
    """What comparisons are asked for; nothing is measured."""
    found = []
    monkeypatch.setattr("matroot.train.style.comparison.compare_style", lambda request, _: found.append(request) or 0)
    return found


def trained(runs, *arguments):
    assert main.main(["train", "style", *arguments]) == 0
    return runs[-1]


def test_variants(runs):
    assert trained(runs).recipe == VARIANTS["short"]
    for variant, recipe in VARIANTS.items():
        assert trained(runs, "--variant", variant).recipe == recipe


def test_fields_and_options(runs, capsys):
    flags = "--preset mpa-lya --seed 3 --iterations 9 --discriminator-channels 8 16 --clip-norm None"
    run = trained(runs, "--variant", "published", *flags.split())
    assert run.recipe == replace(
        StyleRecipe(), preset="mpa-lya", seed=3, iterations=9, discriminator_channels=(8, 16), clip_norm=None
    )
    assert run.out == Path("runs/style-monet2photo-mpa-lya-seed3")
    printed = capsys.readouterr().out
    assert "style, variant published: style_exchange on monet2photo, preset mpa-lya" in printed
    assert "iterations 9 (was 100000)" in printed
    assert "7 steps, 12 ms each; cycle loss 0.500" in printed
    flags = (
        "--data d --out o --resume --device cpu --time-limit 60 --sample-every 20 --report-every 5 --no-graph --quiet"
    )
    run = trained(runs, *flags.split())
    assert run.out == Path("o")
    assert run.options == {
        "data": Path("d"),
        "device": "cpu",
        "resume": True,
        "quiet": True,
        "time_limit": 60.0,
        "cadence": Cadence(report=5, sample=20),
        "graph": False,
    }
    assert capsys.readouterr().out == ""


def test_a_file_of_fields(runs, tmp_path):
    (tmp_path / "mine.toml").write_text("iterations = 3\ndiscriminator_channels = [4, 8]\nlr = 1\n")
    run = trained(runs, "--config", "mine.toml", "--lr", "0.5")
    assert run.recipe == replace(VARIANTS["short"], iterations=3, discriminator_channels=(4, 8), lr=0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "styl"], "unknown recipe 'styl'; did you mean 'style'?"),
        (["train", "style", "--variant", "sort"], "unknown variant of style 'sort'; did you mean 'short'?"),
        (["train", "style", "--iterations", "0"], "iterations must be at least 1, got 0"),
        (["train", "style", "--time-limit", "0"], "--time-limit must be above 0, got 0.0"),
        (["train", "style", "--time-limit", "nan"], "--time-limit must be above 0, got nan"),
        (["train", "style", "--sample-every", "0"], "--sample-every must be above 0, got 0"),
        (["compare", "style", "--presets", "pi"], "unknown preset 'pi'"),
        (["compare", "style", "--presets", "mpa-liar"], "did you mean 'mpa-lya'?"),
        (["compare", "style", "--no-timing"], "nothing to compare"),
    ],
)
def test_wrong_calls(arguments, message, runs, requests, capsys):
    assert main.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not runs
    assert not requests


@pytest.mark.parametrize("command", ["train", "compare"])
def test_help_describes_every_option(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as end:
        main.main([command, "style", "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    options = (*fields(StyleRecipe), *fields(StyleOptions)) if command == "train" else fields(StyleCompareOptions)
    for option in options:
        assert f"--{option.name.replace('_', '-')}" in text
    assert not re.findall(r"(?:[A-Z]{3,}|[}\]]|--[\w-]+) \(default", text)


def test_list(capsys):
    assert main.main(["train", "--list"]) == 0
    words = set(re.findall(r"[\w-]+", capsys.readouterr().out))
    assert {"style", "style_exchange", *VARIANTS} <= words


def test_comparisons(requests):
    assert main.main(["compare", "style"]) == 0
    assert requests[-1].presets[0] == "default"
    assert {"mpa-lya", "svd-taylor"} < set(requests[-1].presets)
    assert (requests[-1].runs, requests[-1].out) == ((), Path("runs/compare-style.json"))
    call = "--presets ns --runs a b --weights-lpips w.pth --data d --device cpu --out o.json"
    assert main.main(["compare", "style", *call.split()]) == 0
    asked = requests[-1]
    assert (asked.presets, asked.runs, asked.lpips_weights) == (("ns",), (Path("a"), Path("b")), Path("w.pth"))
    assert (asked.data, asked.device, asked.out) == (Path("d"), "cpu", Path("o.json"))
    assert asked.command == f"matroot compare style {call}"
    assert main.main(["compare", "style", "--no-timing", "--runs", "a"]) == 0
    assert requests[-1].presets == ()


def test_the_nearest_data_set_is_named_before_anything_is_said(runs, capsys):
    assert main.main(["train", "style", "--dataset", "ukiyoe"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "unknown dataset 'ukiyoe'; did you mean 'ukiyoe2photo'?\n"
    assert not runs
