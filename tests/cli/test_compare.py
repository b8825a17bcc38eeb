"""``matroot compare`` as a command: what it reads, what it refuses, what it passes on."""

import pytest

from matroot._cli import main
from matroot.train.compare import session
from matroot.train.compare.plan import RunOptions
from matroot.train.compare.results import write

from ..train.compare.examples import comparison


@pytest.fixture
def requests(monkeypatch):
    """What comparisons are asked for; none is run."""
    found = []
    monkeypatch.setattr(session, "compare", lambda request, console: found.append(request) or 0)
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "compare-dbn-short-cifar10.json"
    write(path, comparison())
    return path


def test_help_and_no_arguments(capsys):
    assert main.main(["compare", "--help"]) == 0
    assert main.main(["compare"]) == 2
    assert capsys.readouterr().out.count("usage: matroot compare RECIPE") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "0"], "the recipe comes first, got --seeds"),
        (["dbm"], "unknown recipe 'dbm'; did you mean 'dbn'?"),
        (["dbn", "--variant", "sort"], "did you mean 'short'?"),
        (["dbn", "--preset", "ns"], "--preset is for one run: matroot compare has --presets"),
        (["dbn", "--seed=1"], "--seed is for one run: matroot compare has --seeds"),
        (["dbn", "--presets", "mpa-liar"], "did you mean 'mpa-lya'?"),
        (["dbn", "--presets", "pi"], "no inverse root"),
        (["dbn", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["dbn", "--workers", "-1"], "--workers must be at least 0, got -1"),
        (["dbn", "--time-limit", "-1"], "--time-limit must be above 0, got -1.0"),
        (["dbn", "--time-limit", "nan"], "--time-limit must be above 0, got nan"),
        (["dbn", "--seeds", "-1"], "--seeds must be numbers that are not negative"),
        (["dbn", "--seeds"], "--seeds must be numbers that are not negative"),
        (["dbn", "--epochs", "0"], "epochs must be at least 1"),
        (["dbn", "--milestones", "3"], "milestones 3 is for schedule steps; the schedule is one-cycle"),
        (["dbn", "--presets", "baseline", "--whitening-eps", "1"], "preset baseline is the network without"),
        (["--show"], "--show takes result files"),
        (["--show", "a.json", "--page"], "--page one file"),
        (["--show", "a.json", "--pages", "b"], "--show takes result files"),
        (["--show", "missing.json"], "missing.json: No such file"),
        (["--markdown"], "--markdown takes result files"),
        (["--markdown", "a.json", "--page"], "--markdown takes result files"),
        (["--markdown", "missing.json"], "missing.json: No such file"),
    ],
)
def test_wrong_calls(arguments, message, requests, capsys):
    assert main.main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not requests


def test_all_of_the_papers_table_unless_told(requests, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main.main(["compare", "gcp", "--variant", "short"]) == 0
    (asked,) = requests
    assert asked.presets == ("baseline", "default", "svd-taylor", "svd-pade", "ns", "mpa-lya")
    assert asked.seeds == (0, 1)
    assert asked.out.as_posix() == "runs/compare-gcp-short-imagenet"
    assert (asked.name, asked.variant, asked.jobs, asked.time_limit, asked.timing) == ("gcp", "short", 1, None, True)
    assert asked.options == RunOptions()
    assert asked.command == "matroot compare gcp --variant short"


def test_what_one_preset_needs_may_do_nothing_in_another(requests):
    call = ["dbn", "--presets", "baseline", "ns", "--whitening-eps", "0.1", "--published-init"]
    assert main.main(["compare", *call]) == 0
    assert requests[0].recipe.whitening_eps == 0.1


def test_options_and_recipe_fields_are_passed_on(requests, tmp_path):
    call = ["dbn", "--variant", "short", "--presets", "ns", "default", "--seeds", "3", "--epochs", "60"]
    call += ["--out", str(tmp_path), "--jobs", "2", "--time-limit", "9.5", "--no-timing", "--no-graph"]
    call += ["--device", "cpu", "--data", "somewhere else", "--workers", "0"]
    assert main.main(["compare", *call]) == 0
    (asked,) = requests
    assert asked.recipe.epochs == 60
    assert (asked.presets, asked.seeds, asked.out) == (("ns", "default"), (3,), tmp_path)
    assert (asked.jobs, asked.time_limit, asked.timing) == (2, 9.5, False)
    assert str(asked.options.data) == "somewhere else"
    assert (asked.options.device, asked.options.workers, asked.options.graph) == ("cpu", 0, False)
    assert "'somewhere else'" in asked.command


def test_show(file, capsys, requests):
    assert main.main(["compare", "--show", str(file)]) == 0
    out = capsys.readouterr().out
    assert "5.50 ± 0.71" in out
    assert str(file.with_suffix(".html")) in out
    one = file.with_name("one.html")
    assert main.main(["compare", "--show", str(file), str(file), "--page", str(one)]) == 0
    assert one.read_bytes() == file.with_suffix(".html").read_bytes()
    file.write_bytes(file.read_bytes()[:100])
    assert main.main(["compare", "--show", str(file)]) == 2
    assert "not JSON, or cut off" in capsys.readouterr().err
    assert not requests


def test_markdown(file, capsys, requests):
    """Every preset is a row of the table, and no page is written."""
    assert main.main(["compare", "--markdown", str(file), str(file)]) == 0
    out = capsys.readouterr().out
    assert out.count("### dbn, variant short: resnet18_dbn on cifar10, 3 epochs") == 2
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows] == ["| preset", "| ---", "| baseline", "| default", "| mpa-lya"] * 2
    assert {len(row) for row in rows} == {8}
    assert "`matroot compare dbn`, on Example GPU." in out
    assert not file.with_suffix(".html").exists()
    assert not requests
