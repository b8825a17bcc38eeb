"""The page: complete, escaped, self-contained, the same every time."""

import re
import sys

import pytest

from matroot.train.compare.page import page
from matroot.train.compare.plots import bars, curves, lines
from matroot.train.compare.results import RunResult, StepTime, Timing
from matroot.train.compare.run_state import Curve
from matroot.train.compare.summary import cells, summarise

from ...bench.report.test_page import Tree
from .examples import comparison, run


def text_of(html):
    return "".join(Tree(html).text)


@pytest.fixture(scope="module")
def html():
    return page([comparison(), comparison(variant="published")])


def test_everything_is_there(html):
    text = text_of(html)
    for row in summarise(comparison()).rows:
        assert all(cell in text for cell in cells(row))
    for part in ("Of 6 runs 1 failed.", "the loss is not finite", "matroot compare dbn", "Example Processor"):
        assert part in text
    assert html.count('<svg class="plot"') == 4  # two each: of three epochs the last third is none
    assert html.count("<h2>") == 2


def test_identifiers_are_unique_and_links_lead_somewhere(html):
    tags = Tree(html).tags
    idents = [a["id"] for _, a in tags if "id" in a]
    assert len(idents) == len(set(idents))
    targets = [a["href"].removeprefix("#") for _, a in tags if "href" in a] + re.findall(r"url\(#([^)]+)\)", html)
    assert set(targets) <= set(idents)
    for _, a in tags:
        assert set(a.get("aria-labelledby", "").split()) <= set(idents)


def test_nothing_is_fetched(html):
    for tag, a in Tree(html).tags:
        assert tag not in ("script", "img", "link", "iframe", "object")
        assert not {"src", "srcset", "xlink:href"} & set(a)
        assert a.get("href", "#").startswith("#")
    assert not re.search(r"https?:|url\([^#]|@import", html)


def test_colours_and_letters_are_those_of_the_page(html):
    """Every colour changes between light and dark, and no font is one that the reader may not have."""
    plots = "".join(re.findall(r'<svg class="plot".*?</svg>', html, re.DOTALL))
    assert "var(--c0)" in plots
    assert "currentColor" in plots
    assert not re.search(r"#[0-9a-f]{6}|rgb\(|font", plots)


def test_the_same_bytes_whatever_the_settings_of_matplotlib():
    import matplotlib

    before = page([comparison()])
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": "other", "axes.grid": False}):
        assert page([comparison()]) == before
        assert matplotlib.rcParams["lines.linewidth"] == 9


def test_everything_from_files_is_escaped():
    evil = "<script>alert(1)</script>\"'&$x_1$"
    runs = (run(evil, 0, 0.5, 0.6), run("baseline", 0, 0.4, failure=evil))
    found = page(
        [
            comparison(
                command=evil,
                environment={evil: evil},
                variant=evil,
                recipe={"model": evil, "dataset": evil, "epochs": 2, evil: evil},
                stand_in=evil,
                runs=runs,
                timing=Timing(evil, {evil: StepTime(1.0, 0.9, 1.1, evil, 0.5)}, {evil: evil}),
            )
        ]
    )
    tree = Tree(found)
    assert "script" not in {tag for tag, _ in tree.tags}
    assert text_of(found).count(evil) >= 12
    assert not [name for _, a in tree.tags for name in a if "<" in name or "alert" in name]


def test_lines_by_hand():
    runs = (
        run("ns", 0, 0.5, 0.7),
        run("ns", 1, 0.6),
        RunResult("ns", 2, None, None, Curve((1, 2), (0.1, None), (1, 1))),
    )
    (line,) = lines(comparison(runs=runs))
    assert line.epochs == (1, 2)
    assert line.means == pytest.approx((40, 70))
    assert line.lows == pytest.approx((10, 70))
    assert line.highs == pytest.approx((60, 70))


def test_the_last_third_is_the_last_third():
    found = lines(comparison(runs=(run("ns", 0, *(k / 10 for k in range(9))),)))
    assert "ns: 0.00 to 80.00" in curves("a", found, 9)
    assert "ns: 60.00 to 80.00" in curves("a", found, 9, last_third=True)
    assert curves("a", found, 3, last_third=True) == ""  # one epoch


def test_figures_without_figures_are_left_out():
    empty = comparison(runs=(), timing=None)
    assert curves("a", lines(empty), 3) == bars("a", summarise(empty)) == ""
    unfinished = comparison(runs=(run("ns", 0, 0.5),), recipe={**comparison().recipe, "epochs": 90}, timing=None)
    html = page([empty, unfinished])
    assert html.count('<svg class="plot"') == 1
    assert "Too few figures for a statement." in html


def test_without_matplotlib_the_error_names_it(monkeypatch):
    from matroot._terminal import CommandError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(CommandError, match=r'matplotlib: pip install "matroot\[training\]"'):
        page([comparison()])
