"""The README: its table and its figure are those of the committed results."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from matroot._registry import GRADIENTS, METHODS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COLUMNS = ("auto", "paper", "jax eigh", "cupy eigh")


@pytest.fixture
def measured() -> dict:
    return json.loads((ROOT / "benchmarks/results/gpu-nvidia-h200.json").read_text())


def test_the_table_is_that_of_the_committed_results(measured):
    rows = re.findall(r"^\| (\d+)\D(\d+)\D\d+ \|(.+)\|$", README, re.MULTILINE)
    assert len(rows) == 6
    cases = {(case["batch"], case["n"]): case for case in measured["results"]}
    for batch, n, cells in rows:
        case = cases[int(batch), int(n)]
        times = [case["milliseconds"][name]["single"]["median"] for name in COLUMNS]
        errors = [case["errors"][name]["root"] for name in COLUMNS[:2]]
        assert [float(cell) for cell in cells.split("|")] == [float(f"{value:.2g}") for value in times + errors]


def test_machine_versions_and_date_of_the_table_are_named(measured):
    text = " ".join(README.split())
    machine, versions = measured["surroundings"], measured["versions"]
    for words in (
        machine["device"],
        f"torch {machine['torch'].partition('+')[0]}",
        f"Triton {versions['triton']}",
        f"JAX {versions['jax']}",
        f"CuPy {versions['cupy']}",
        machine["date"].partition("T")[0],
        measured["command"],
    ):
        assert words in text


def test_the_figure_is_drawn_from_the_committed_results(figures):
    """The file names the digest of what it was drawn from; ``python docs/figures/readme.py`` draws it again."""
    pytest.importorskip("matplotlib")
    readme = figures("readme")
    source = readme.FIGURE.read_text()
    assert f"<!-- results: {readme.digest()} -->" in source
    assert f"]({readme.FIGURE.relative_to(ROOT)})" in README
    ElementTree.fromstring(source)


def test_the_figure_has_colours_for_both_themes(figures):
    pytest.importorskip("matplotlib")
    source = figures("readme").FIGURE.read_text()
    _, _, dark = source.partition("</style>")[0].partition("dark")
    used = set(re.findall(r"var\((--\w+), #\w+\)", source))
    assert "--one" in used
    assert all(f"{variable}: #" in dark for variable in used)


def test_every_method_and_gradient_is_named():
    assert all(f'`"{name}"`' in README for name in ("auto", *METHODS, *GRADIENTS))


def test_the_two_commands_are_targets():
    targets = re.findall(r"^make (\w+) ", README, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert targets == ["demo", "test"]
    assert all(f"\n{target}:" in makefile for target in targets)
