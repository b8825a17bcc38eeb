"""Axes and ticks of plots."""

import math

import pytest

from matroot.bench.report.plots import Axis, Series, axis_range, plot, tick_text, ticks

NUMBERS = [(1.0,), (1e-12, 1e3), (0.97, 0.99), (2.0, 3.0), (3e-7, 3.1e-7), (1e-199, 1e199)]


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_ticks_are_few_and_inside(log, numbers):
    axis = Axis("x", log)
    low, high = axis_range(numbers, axis)
    found = ticks(axis, (low, high))
    assert 1 <= len(found) <= 10
    assert found == sorted(set(found))
    # Ticks at the very end of an axis may lie outside by rounding, a hundredth of a pixel.
    tolerance = 1e-5 * (high - low)
    assert all(low - tolerance <= (math.log10(x) if log else x) <= high + tolerance for x in found)


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_every_point_has_a_marker(log, numbers):
    axis = Axis("x", log)
    ends = axis_range(numbers, axis)
    svg = plot("p", "t", "d", axis, axis, [Series("s", [(x, x) for x in numbers], 0)], (ends, ends))
    assert svg.count("<circle") == len(numbers) + 1  # and the legend's


def test_an_axis_without_numbers_has_no_range():
    assert axis_range([0.0, -1.0], Axis("x")) is None
    assert axis_range([], Axis("x", log=False)) is None


def test_tick_texts():
    power = '<tspan dy="-5" class="power">{}</tspan>'.format
    texts = {0: "0", 0.001: "0.001", 0.5: "0.5", 1000: "1000", 999.7: "1000", 20000: "20000"}
    texts |= {1e-4: "10" + power("\u22124"), 2e5: "2·10" + power("5")}
    assert {value: tick_text(value) for value in texts} == texts
