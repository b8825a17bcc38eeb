"""Tables as text."""

from matroot.bench import text


def test_columns_are_as_wide_as_their_text():
    lines = text.table(("batch x n", "ms"), [["1 x 64", "0.0321"], ["10000 x 64", "3"]]).splitlines()
    assert lines == ["batch x n       ms", "1 x 64      0.0321", "10000 x 64       3"]
