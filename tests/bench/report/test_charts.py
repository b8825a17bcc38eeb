"""Axes, ticks, marks and bars of charts."""

import math

import pytest

from matroot._page.drawing import PAPER, drawing
from matroot.bench.report.charts import (
    GREY,
    Axis,
    Bar,
    Group,
    Series,
    axis_range,
    bar_chart,
    letters,
    line_chart,
    tick_text,
    ticks,
)

NUMBERS = [(1.0,), (1e-12, 1e3), (0.97, 0.99), (2.0, 3.0), (3e-7, 3.1e-7), (1e-199, 1e199)]


@pytest.fixture
def _settings():
    with drawing(PAPER, "bench"):
        yield


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_ticks_are_few_and_inside(log, numbers):
    axis = Axis("x", log)
    low, high = axis_range(numbers, axis)
    found = ticks(axis, (low, high))
    assert 1 <= len(found) <= 10
    assert found == sorted(set(found))
    # Ticks at the very end of an axis may lie outside by rounding, a hundredth of a pixel.
    low, high, *found = (math.log10(x) if log else x for x in (low, high, *found))
    tolerance = 1e-5 * (high - low)
    assert all(low - tolerance <= x <= high + tolerance for x in found)


@pytest.mark.usefixtures("_settings")
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_points_are_drawn_where_they_are(log, numbers):
    axis = Axis("x", log)
    ends = axis_range(numbers, axis)
    figure = line_chart(PAPER, axis, axis, [Series("s", [(x, x) for x in numbers], 0)], (ends, ends))
    (axes,) = figure.axes
    line = axes.get_lines()[0]
    assert list(line.get_xdata()) == list(line.get_ydata()) == list(numbers)
    assert line.get_marker() == "o"
    assert (axes.get_xlim(), axes.get_ylim()) == (ends, ends)


def test_an_axis_without_numbers_has_no_range():
    assert axis_range([0.0, -1.0], Axis("x")) is None
    assert axis_range([], Axis("x", log=False)) is None


def test_tick_texts():
    texts = {
        0: "0",
        0.001: "0.001",
        0.5: "0.5",
        1000: "1000",
        999.7: "1000",
        20000: "20000",
        1e-4: "10⁻⁴",
        2e5: "2·10⁵",
    }
    assert {value: tick_text(value) for value in texts} == texts


@pytest.mark.usefixtures("_settings")
def test_the_legend_names_those_that_stand_back_once_and_the_default_lies_on_top():
    series = [Series("auto", [(1, 1)], 0, label="matroot")]
    series += [Series(name, [(1, 2)], GREY, label="others") for name in ("svd-clip", "svd-pi")]
    series += [Series("ns", [(2, 2)], 4)]
    figure = line_chart(PAPER, Axis("x"), Axis("y"), series, ((0.5, 2), (0.5, 3)))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["matroot", "others", "ns"]
    lines = figure.axes[0].get_lines()[:4]
    assert [line.get_color() for line in lines] == [PAPER.faint, PAPER.faint, PAPER.colours[4], PAPER.colours[0]]


@pytest.mark.usefixtures("_settings")
def test_rows_are_named_from_the_top():
    points = [Series("auto", [(2.0, 0.0), (3.0, 1.0)], 0, joined=False)]
    (axes,) = line_chart(PAPER, Axis("x"), Axis(""), points, ((1, 4), (0, 1)), ["small", "large"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["small", "large"]
    bottom, top = axes.get_ylim()
    assert bottom > top


@pytest.mark.usefixtures("_settings")
def test_bars_end_at_their_numbers_and_say_them():
    bars = (Bar("ours", (2.0,), 0), Bar("theirs", (7.42,), 1, partial=True), Bar("other", (None,), 2))
    (axes,) = bar_chart(PAPER, Axis("ms"), (0.1, 100), [Group("64 matrices", bars)]).axes
    assert [patch.get_x() + patch.get_width() for patch in axes.patches] == pytest.approx([2.0, 7.42])
    assert [text.get_text() for text in axes.texts] == ["64 matrices", "2", "7.42", "not measured"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "theirs", "other"]
    assert axes.patches[0].get_alpha() > axes.patches[1].get_alpha()


@pytest.mark.usefixtures("_settings")
@pytest.mark.parametrize(
    ("numbers", "said"),
    [((None, None), "not measured"), ((math.nan, 1e-7), "nan"), ((1e-7, math.nan), "nan"), ((0.0, None), "0")],
)
def test_what_has_no_mark_is_said(numbers, said):
    (axes,) = bar_chart(PAPER, Axis("error"), (1e-8, 1), [Group("g", (Bar("ours", numbers, 0),))]).axes
    assert [text.get_text() for text in axes.texts] == ["g", said]


@pytest.mark.usefixtures("_settings")
def test_pairs_are_a_full_and_an_empty_mark():
    (axes,) = bar_chart(PAPER, Axis("error"), (1e-8, 1), [Group("g", (Bar("ours", (1e-7, 3e-7), 0),))]).axes
    marks = {line.get_xdata()[0]: line.get_markerfacecolor() for line in axes.get_lines()}
    assert marks == {1e-7: PAPER.colours[0], 3e-7: PAPER.back}


def test_text_from_files_is_cut_and_whole():
    assert letters("auto") == "auto"
    assert len(letters("9" * 400)) == 34
    assert letters("a\ud800") == "a?"
