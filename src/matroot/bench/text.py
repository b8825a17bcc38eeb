"""Numbers and tables as text."""

import math
from collections.abc import Iterable, Sequence

MISSING = "-"


def scientific(value: float | None, missing: str = MISSING) -> str:
    """2.1e-7, nan, or the sign for a value that does not exist."""
    if value is None:
        return missing
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if math.isfinite(value) else "nan"


def three_digits(value: float | None, missing: str = MISSING) -> str:
    """0.032, 0.321, 3.21, 32.1, 321, 3210, or the sign for a value that does not exist."""
    if value is None:
        return missing
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "nan"
    # Rounding may add a digit: 9.996 is 10.0.
    digits = 2 - math.floor(math.log10(float(f"{value:.2e}")))
    return f"{value:.{max(0, min(3, digits))}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their text and two spaces apart, the first aligned left and the others right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])
        for cells in lines
    )


def shape(batch: int, n: int) -> str:
    """``64 x 48``: a batch and the size of its matrices."""
    return f"{batch} x {n}"
