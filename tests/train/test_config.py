"""Config files: the same fields, the same types, and messages that name what is wrong where."""

import json
from dataclasses import asdict, replace

import pytest

from matroot._terminal import CommandError
from matroot.train.config import counted, differences, load_config
from matroot.train.recipes import RECIPES

BASE = RECIPES["gcp"]["published"]
VARIANTS = [(name, variant) for name, variants in RECIPES.items() for variant in variants]


def loaded(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return load_config(path, BASE)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_recipe_as_json_is_read_back(name, variant, tmp_path):
    recipe = RECIPES[name][variant]
    assert loaded(tmp_path, "recipe.json", json.dumps(asdict(recipe))) == recipe
    run = {"format": "matroot-run 1", "command": "matroot train", "recipe": asdict(recipe), "result": None}
    assert loaded(tmp_path, "run.json", json.dumps(run)) == recipe


def test_a_field_that_is_younger_than_a_run_had_its_default(tmp_path):
    fields = asdict(BASE)
    del fields["clip_norm"], fields["milestones"]
    run = {"format": "matroot-run 1", "recipe": fields}
    assert loaded(tmp_path, "run.json", json.dumps(run)) == replace(BASE, clip_norm=None, milestones=())


def test_fields_of_a_file_replace_those_of_the_variant(tmp_path):
    text = """
        lr = 1  # a whole number is a number
        milestones = [3, 7]
        clip_norm = "none"
        compile = true
        precision = "bfloat16"
        rand_augment = "rand-m9"
    """
    assert loaded(tmp_path, "recipe.toml", text) == replace(
        BASE, lr=1.0, milestones=(3, 7), clip_norm=None, compile=True, precision="bfloat16", rand_augment="rand-m9"
    )
    assert type(loaded(tmp_path, "recipe.toml", text).lr) is float


def test_an_empty_file_changes_nothing(tmp_path):
    assert loaded(tmp_path, "recipe.toml", "") == BASE


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("batchsize = 3", "unknown field 'batchsize'; did you mean 'batch_size'?"),
        ("batch-size = 3", "unknown field 'batch-size'; did you mean 'batch_size'?"),
        ("zzz = 3", "unknown field 'zzz'; valid names are model, dataset, "),
        ("[recipe]\nlr = 3", "unknown field 'recipe'"),
        ("epochs = 3.5", "epochs must be a whole number, got 3.5"),
        ("epochs = true", "epochs must be a whole number, got True"),
        ("lr = '0.1'", "lr must be a number, got '0.1'"),
        ("compile = 1", "compile must be true or false, got 1"),
        ("milestones = 3", "milestones must be a list of whole numbers, got 3"),
        ("milestones = [3, 'x']", "milestones must be a list of whole numbers, got [3, 'x']"),
        ("clip_norm = 'x'", "clip_norm must be a number or none, got 'x'"),
        ("schedule = 'step'", "schedule must be one of steps, cosine, one-cycle, got 'step'"),
        ("model = ['a']", "model must be text, got ['a']"),
        ("lr = ", "is not TOML"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(line, message, tmp_path):
    with pytest.raises(CommandError) as wrong:
        loaded(tmp_path, "recipe.toml", line)
    assert str(tmp_path / "recipe.toml") in str(wrong.value)
    assert message in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("recipe.yaml", "lr: 3", "ends in .toml or .json"),
        ("recipe.json", "[1]", "expected fields of a recipe"),
        ("recipe.json", '{"lr": ', "is not JSON"),
        ("run.json", '{"format": "matroot-run 1"}', "expected fields of a recipe"),
    ],
)
def test_other_files(name, text, message, tmp_path):
    with pytest.raises(CommandError, match=message):
        loaded(tmp_path, name, text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CommandError, match=r"missing\.toml cannot be read: No such file"):
        load_config(tmp_path / "missing.toml", BASE)
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(CommandError, match=r"bytes\.toml is not TOML"):
        load_config(tmp_path / "bytes.toml", BASE)


def test_differences_are_in_the_order_of_fields():
    changed = replace(BASE, clip_norm=None, epochs=3, milestones=())
    assert [str(change) for change in differences(BASE, changed)] == [
        "epochs 3 (was 60)",
        "milestones none (was 30 45)",
        "clip_norm None (was 5.0)",
    ]
    assert differences(BASE, BASE) == []


def test_one_of_them_is_one():
    assert [counted(number, "epoch") for number in (0, 1, 2, 1000)] == [
        "0 epochs",
        "1 epoch",
        "2 epochs",
        "1000 epochs",
    ]
