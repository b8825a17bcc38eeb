"""Numbers as text."""

import math

import pytest

from matroot.bench import formatting

NEVER = (None, 0.0, math.nan, math.inf)
"""What has no digits."""


def test_number():
    values = (2.0, 0.354123, 0.01, 12.34, 999.4, 1234.4, 99999.0, 0.00999, 2.14e-7, 1.2e5, -3e-9)
    texts = ["2", "0.354", "0.01", "12.3", "999", "1234", "99999", "1.0·10⁻²", "2.1·10⁻⁷", "1.2·10⁵", "-3.0·10⁻⁹"]
    assert [formatting.number(x) for x in values] == texts
    assert [formatting.number(x, missing="none") for x in NEVER] == ["none", "0", "nan", "nan"]


@pytest.mark.parametrize(("x", "text"), [(999.5, "1000"), (999.97, "1000"), (-999.7, "-1000"), (99999.7, "100000")])
def test_number_rounded_up_to_a_power_of_ten_keeps_its_digits(x, text):
    assert formatting.number(x) == text


def test_ratio():
    assert [formatting.ratio(x) for x in (0.5, 3.72, 12.2, 99.4, 340.4)] == ["0.5", "3.7", "12", "99", "340"]
    assert formatting.ratio(99.7) == "100"


def test_duration():
    assert formatting.duration(7.4) == "7.4 ms"


def test_scientific():
    assert [formatting.scientific(x) for x in (2.14e-7, 12.0, 9.96e-4)] == ["2.1e-7", "1.2e1", "1.0e-3"]
    assert [formatting.scientific(x, missing="none") for x in NEVER] == ["none", "0.0e0", "nan", "nan"]


def test_three_digits():
    values = (1e-6, 0.0321, 0.321, 3.2, 9.996, 32.1, 99.96, 1234.4)
    assert [formatting.three_digits(x) for x in values] == [
        *("1.0e-6", "0.0321", "0.321", "3.20", "10.0", "32.1", "100", "1234")
    ]
    assert [formatting.three_digits(x, missing="none") for x in NEVER] == ["none", "0", "nan", "nan"]
