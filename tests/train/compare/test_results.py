"""Result files: what is written comes back, and what is wrong is named."""

import json

import pytest

from matroot._terminal import CommandError
from matroot.train.compare.results import CompareError, read, write

from .examples import comparison, run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "compare-dbn-short-cifar10.json"
    write(path, comparison())
    return path


def test_what_is_written_comes_back(file):
    assert read(file) == comparison()
    assert comparison().file_name == file.name


def test_a_run_is_added_or_replaced():
    new, other = run("default", 1, 0.5), run("ns", 0, 0.5)
    found = comparison().with_run(new).with_run(other).runs
    assert len(found) == 7
    assert found[4] is new
    assert found[-1] is other


def change(file, at, value):
    document = json.loads(file.read_text())
    *path, last = at
    found = document
    for key in path:
        found = found[key]
    if value is None:
        del found[last]
    else:
        found[last] = value
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (["format"], "matroot-bench 1", 'format must be "matroot-compare 1"'),
        (["format"], None, "no result file of matroot compare"),
        (["command"], 3, "command must be a string"),
        (["recipe"], [], "recipe must be an object"),
        (["recipe", "epochs"], None, "recipe.epochs is missing"),
        (["recipe", "epochs"], True, "recipe.epochs must be a whole number"),
        (["runs", 1], 3, r"runs\[1\] must be an object"),
        (["runs", 1, "seed"], "0", r"runs\[1\].seed must be a whole number"),
        (["runs", 1, "preset"], "baseline", r"runs\[1\] repeats preset 'baseline' with seed 0"),
        (["runs", 0, "result", "best_accuracy"], 94, r"runs\[0\].result.best_accuracy must be between 0 and 1"),
        (["runs", 0, "result", "final_accuracy"], None, r"runs\[0\].result.final_accuracy is missing"),
        (["runs", 0, "curve", "epoch"], [1], r"runs\[0\].curve must have lists of one length"),
        (["runs", 0, "curve", "epoch"], [1, 2, "3"], r"runs\[0\].curve.epoch must be a finite number"),
        (["runs", 0, "curve", "epoch"], [1, 2, 2.5], r"runs\[0\].curve.epoch must be a list of whole numbers"),
        (["runs", 0, "curve", "train_loss"], [1, 2, 1e300], r"runs\[0\].curve.train_loss must be a finite number"),
        (["timing", "steps", "default", "median"], 0, "timing.steps.default must have times above 0"),
        (["timing", "failures"], {"ns": 3}, "timing.failures.ns must be a string"),
    ],
)
def test_wrong_fields_are_named(file, at, value, message):
    change(file, at, value)
    with pytest.raises(CommandError, match=message) as raised:
        read(file)
    assert str(file) in str(raised.value)


def test_files_that_are_cut_off_or_not_there(file, tmp_path):
    data = file.read_bytes()
    for length in (0, 1, len(data) // 2, len(data) - 3):
        file.write_bytes(data[:length])
        with pytest.raises(CompareError, match="not JSON, or cut off"):
            read(file)
    file.write_bytes(data.replace(b"0.95", b"NaN", 1))
    with pytest.raises(CompareError, match="NaN is no number"):
        read(file)
    with pytest.raises(CompareError, match=r"missing.json: No such file"):
        read(tmp_path / "missing.json")


def test_a_full_disk_leaves_the_earlier_file(file, fill_disk):
    before = file.read_bytes()
    fill_disk()
    with pytest.raises(CompareError, match="No space left"):
        write(file, comparison(runs=()))
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
