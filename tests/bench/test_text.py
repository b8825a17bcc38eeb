"""Numbers and tables as text."""

import math

from matroot.bench import text


def test_scientific():
    values = (2.14e-7, 0.0, 12.0, math.nan, math.inf, None)
    assert [text.scientific(v) for v in values] == ["2.1e-7", "0.0e0", "1.2e1", "nan", "nan", "-"]


def test_three_digits():
    values = {
        0.0: "0", 0.00321: "0.003", 0.0321: "0.032", 0.3214: "0.321", 3.2: "3.20", 9.996: "10.0",
        99.96: "100", 1234.4: "1234", math.nan: "nan", math.inf: "nan", None: "-",
    }  # fmt: skip
    for value, expected in values.items():
        assert text.three_digits(value) == expected


def test_columns_are_as_wide_as_their_text():
    lines = text.table(("batch x n", "ms"), [["1 x 64", "0.0321"], ["10000 x 64", "3"]]).splitlines()
    assert lines == ["batch x n       ms", "1 x 64      0.0321", "10000 x 64       3"]
