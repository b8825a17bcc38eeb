"""Figures of the site: those of results show the committed numbers, all take the page's colours."""

import importlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


def read(name: str) -> dict:
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())


def test_bars_are_the_committed_times(figures):
    results = figures("results")
    cpu, gpu = results.times().axes
    speed = [case for case in read("bench-cpu-float32")["cases"] if case["suite"] == "speed"]
    for axes, expected in (
        (cpu, [(case["milliseconds"] or {}).get("median") for case in speed if case["contestant"] == "auto"]),
        (gpu, [case["milliseconds"]["auto"]["single"]["median"] for case in read("gpu-nvidia-h200")["results"]]),
    ):
        (bars,) = (group for group in axes.containers if group.get_label() == "matroot")
        drawn = [bar.get_width() for bar in bars]
        assert len(drawn) == len(results.SHAPES)
        assert set(drawn) <= set(expected)


def test_lines_are_the_committed_errors(figures):
    root, gradient = figures("results").errors().axes
    for axes, kind in ((root, "root"), (gradient, "root_gradient")):
        (line,) = (line for line in axes.lines if line.get_label() == "matroot")
        cases = [
            case
            for case in read("bench-cpu-float32")["cases"]
            if (case["suite"], case["contestant"]) == ("accuracy", "minimax+smith")
            and case["parameters"]["spectrum"] == "log"
        ]
        assert {*map(float, line.get_ydata())} == {case["errors"][kind] for case in cases}


def test_figures_take_the_colours_of_the_page(figures, tmp_path):
    names = ("times", "decision", "small_eigenvalues")
    figures("draw").draw_all(tmp_path, names)
    css = (ROOT / "docs/_static/site.css").read_text()
    for name in names:
        source = (tmp_path / f"{name}.svg").read_text()
        ElementTree.fromstring(source)
        used = {part.partition(",")[0] for part in source.split("var(")[1:]}
        assert "--ink" in used
        assert all(f"{variable}: " in css for variable in used)


def test_figures_are_drawn_again_when_their_inputs_change(figures, tmp_path, capsys):
    draw = figures("draw")
    for expected in ("decision", ""):
        draw.draw_all(tmp_path, ["decision"])
        assert capsys.readouterr().out.partition(":")[0] == expected
    (tmp_path / "decision.digest").write_text("of other inputs")
    draw.draw_all(tmp_path, ["decision"])
    assert capsys.readouterr().out.startswith("decision")


@pytest.mark.parametrize(("points", "scrolls"), [(590.4, True), (460.8, False)])
def test_wide_figures_keep_their_width_on_a_phone(points, scrolls, monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "docs/_ext")
    inline_svg = importlib.import_module("drawn").inline_svg
    found = inline_svg(f'<?xml?><svg width="{points}pt"><g id="a"/></svg>', "A & B", "name")
    assert found.startswith('<svg role="img" aria-label="A &amp; B"')
    assert 'id="name-a"' in found
    assert (f"--width: {points}px" in found) == scrolls


def test_tutorials_and_pages_name_the_same_figures(figures):
    drawn = set(figures("draw").figures())
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert drawn == set(re.findall(r"```\{drawn\} (\w+)", pages))
