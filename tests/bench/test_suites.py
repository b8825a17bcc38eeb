"""The suites of ``matroot bench``: their cases, what each measures, and that wrong answers are found."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import matroot
from matroot._cli.main import _parser
from matroot._cli.recipe_arguments import parse
from matroot._cli.train_style import StyleOptions
from matroot._timer import Samples, Timings
from matroot.bench import compare, entries, runner, suites
from matroot.bench.cases import Settings
from matroot.bench.format import read as checked
from matroot.bench.suites import accuracy, forward
from matroot.train.recipes import RECIPES
from matroot.train.style.recipe import NAME as STYLE
from matroot.train.style.recipe import STYLE_RECIPES, TITLE

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = Settings(quick=True)
COMMITTED = Path(__file__).parents[2] / "benchmarks/results"
WITHOUT_TIMES = ("scalar", "residuals", "accuracy")
ERRORS = {
    "forward": {"mae", "nrmse"},
    "backward": {"gradient"},
    "batch": {"root", "gradient"},
    "dimension": {"root", "gradient"},
    "schemes": {"gradient"},
    "accuracy": {"root", "inverse", "root_gradient", "inverse_gradient"},
    "speed": {"root", "gradient"},
    "applications": {"root", "gradient"},
    "pade": {"root", "gradient"},
}
PARAMETERS = {
    "batch": {"batch"},
    "dimension": {"n"},
    "applications": {"shape", "output"},
    "accuracy": {"spectrum", "condition"},
    "speed": {"batch", "n"},
    "pade": {"degree", "inverse"},
}
VALUES = {
    "forward": {"matrices"},
    "scalar": {"z", "value", "error"},
    "residuals": {"steps", "residual"},
    "schemes": {"megabytes"},
    "accuracy": {"forward_products", "backward_products"},
}


@pytest.fixture
def tiny(monkeypatch):
    """One call each, of few small matrices and three spectra."""
    monkeypatch.setattr(compare, "time_interleaved", one_call)
    make = compare.covariances_and_gradients
    for module in (compare, forward):
        monkeypatch.setattr(module, "covariances_and_gradients", lambda batch, n: make(min(batch, 3), min(n, 12)))
    few = [("wishart", None), ("log", 1e5), ("low-rank", 1e2)]
    monkeypatch.setattr(accuracy, "spectra", lambda quick: iter(few))


def one_call(works, rounds, device, *, time_budget):
    for work in works.values():
        work()
    return Timings({name: Samples([1e-3, 2e-3]) for name in works}, {})


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", suites.NAMES)
def test_quick_cases_are_as_the_format_has_them(name, dtype, tmp_path, capsys):
    settings = Settings(dtype=dtype, quick=True)
    assert runner.run(settings, tmp_path, [name]) == 0, capsys.readouterr().err
    _, content = checked(tmp_path / f"bench-cpu-{dtype}.json")
    assert content["cases"]
    for case in content["cases"]:
        assert case["suite"] == name
        assert (case["milliseconds"] is None) == (name in WITHOUT_TIMES)
        assert set(case["parameters"]) == PARAMETERS.get(name, set(case["parameters"]))
        if case["contestant"] == "scipy":
            assert case["errors"]["root"] < 1e-2
            assert case["errors"].get("gradient") is None
            assert case["note"] == entries.VALUE_ALONE
            continue
        assert ERRORS.get(name, set()) <= set(case["errors"])
        assert set(case["values"]) == VALUES.get(name, set())
        assert case["note"] is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("name", suites.NAMES)
def test_quick_cases_on_cuda(name, tmp_path, capsys):
    assert runner.run(Settings("cuda", quick=True), tmp_path, [name]) == 0, capsys.readouterr().err
    _, content = checked(tmp_path / "bench-cuda-float32.json")
    assert {case["note"] for case in content["cases"]} <= {None, "left out: SciPy computes on the CPU"}


def test_names_of_a_full_run_are_unique_and_those_of_the_committed_results():
    """``matrix_sqrth`` exists from torch 2.14 on; the committed files are older."""
    found = [(c.suite, c.name) for suite in suites.SUITES.values() for g in suite(Settings()) for c in g.cases]
    assert len(set(found)) == len(found)
    for device in ("cpu", "cuda"):
        _, content = checked(COMMITTED / f"bench-{device}-float32.json")
        committed = {(case["suite"], case["case"]) for case in content["cases"]}
        assert committed == {(suite, name) for suite, name in found if not name.startswith("matrix_sqrth")}


@pytest.mark.parametrize("path", sorted(COMMITTED.glob("*.json")), ids=lambda path: path.stem)
def test_committed_commands_can_be_run(path):
    command = json.loads(path.read_text())["command"].split()
    if command[:2] == ["matroot", "compare"]:
        assert command[2] in (*RECIPES, STYLE)
    elif command[:3] == ["matroot", "train", STYLE]:
        assert parse("matroot train", command[2:], StyleOptions(), STYLE_RECIPES, {STYLE: TITLE}).recipe
    elif command[0] == "matroot":
        assert _parser().parse_args(command[1:]).suite == list(suites.NAMES)
    elif command[:2] == ["python", "-m"]:
        assert find_spec(command[2])
    else:
        assert command[0] == "python"
        assert (COMMITTED.parents[1] / command[1]).exists()


@pytest.mark.usefixtures("tiny")
def test_a_broken_method_is_caught(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(matroot.Pade, "evaluate", lambda self, A, wanted: (1.5 * A,))
    assert runner.run(QUICK, tmp_path, ["forward"]) == 1
    assert "pade degree=9 inverse=False: wrong answer: nrmse error" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["speed", "accuracy"])
def test_without_scipy(name, tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "find_spec", lambda package: None)
    assert runner.run(QUICK, tmp_path, [name]) == 0
    _, content = checked(tmp_path / "bench-cpu-float32.json")
    notes = {case["note"] for case in content["cases"] if case["contestant"] == "scipy"}
    assert notes == {"left out: SciPy is not installed"}
