"""Figures as parts of a page and as files."""

import io
import re
import xml.etree.ElementTree as ElementTree
from importlib.resources import files

import pytest

from matroot._page.drawing import COLOURS, FORMATS, PAGE, PAPER, drawing, save, to_svg


def figure(palette, title="0.12345: $x_1$"):
    from matplotlib.figure import Figure

    found = Figure((3, 2))
    axes = found.add_subplot()
    axes.plot([1, 2, 3], [0.001, 0.12345, 0.2], color=palette.colour(9), marker="o")
    axes.set_title(title, weight="bold")
    return found


@pytest.fixture(scope="module")
def svg():
    with drawing(PAGE, "bench"):
        return to_svg(figure(PAGE), "here", "A <title>", "& a description")


def test_the_element_is_well_formed_and_named(svg):
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-labelledby"] == "here-t here-d"
    assert [child.text for child in root[:2]] == ["A <title>", "& a description"]


def test_all_identifiers_begin_with_that_of_the_figure_and_are_found(svg):
    idents = re.findall(r' id="([^"]*)"', svg)
    assert len(idents) == len(set(idents)) > 2
    assert all(ident.startswith("here-") for ident in idents)
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)) <= {
        pair for ident in idents for pair in ((ident, ""), ("", ident))
    }


def test_shortening_leaves_text_alone(svg):
    """Coordinates are rounded, and spaces after colons left out, inside tags only."""
    assert ">0.12345: $x_1$</text>" in svg
    assert not re.search(r"\d\.\d{3}", re.sub(r">[^<]*<", "><", svg))


def test_shortening_moves_nothing():
    """By at most a hundredth of a pixel: the line of the chart, as matplotlib and as the page has it."""
    with drawing(PAGE, "bench"):
        one, written = figure(PAGE), io.StringIO()
        one.savefig(written, format="svg")
        short = to_svg(one, "a", "b", "c")
    paths = []
    for text in (written.getvalue(), short):
        drawn = re.search(
            r'<path d="([^"]*)" clip-path="[^"]*" style="fill: ?none; ?stroke: ?(#0a0a01|var\(--c1\))', text
        )
        paths.append([float(x) for x in re.findall(r"[\d.]+", drawn[1])])
    assert len(paths[0]) == 6
    assert paths[1] == pytest.approx(paths[0], abs=0.01)


def test_weights_are_kept_and_fonts_are_the_pages(svg):
    assert "font-weight:700" in svg
    assert not re.search(r"font-family|font:", svg)


def test_colours_are_variables(svg):
    assert "var(--c1)" in svg
    assert "#0a0a" not in svg
    assert "#0b0b" not in svg


def test_the_palette_for_papers_is_the_light_one_of_the_style_sheet():
    css = files("matroot._page").joinpath("style.css").read_text()
    light = dict(re.findall(r"--(\w+): (#\w+);", css.partition("@media")[0]))
    assert tuple(light[f"c{k}"] for k in range(COLOURS)) == PAPER.colours
    assert (light["ink"], light["faint"], light["rule"]) == (PAPER.ink, PAPER.faint, PAPER.rule)


def test_files_are_the_same_every_time(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
        with drawing(PAPER, "bench"):
            paths = save(figure(PAPER), folder, "chart")
        assert [path.name for path in paths] == [f"chart.{kind}" for kind in FORMATS]
    assert all((first / f"chart.{kind}").read_bytes() == (again / f"chart.{kind}").read_bytes() for kind in FORMATS)
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for kind, start in starts.items():
        assert (first / f"chart.{kind}").read_bytes().startswith(start)


def test_letters_that_no_font_has_are_no_warning():
    with drawing(PAGE, "bench"):
        assert "\U00013000" in to_svg(figure(PAGE, "\U00013000"), "a", "b", "c")
