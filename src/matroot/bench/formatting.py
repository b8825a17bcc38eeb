"""Numbers as text: one way for sentences and one for columns, in the terminal and in the report.

What is not finite is ``nan``: no measurement.
"""

import math

MISSING = "-"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(x: float | None, missing: str = MISSING) -> str:
    """For sentences: ``0.354``, ``2``, ``1234``, ``2.1·10⁻⁷``, ``nan``; ``missing`` for None."""
    if x is None:
        return missing
    if x == 0:
        return "0"
    if not math.isfinite(x):
        return "nan"
    if 1e-2 <= abs(x) < 1e5:
        return significant(x, 3)
    mantissa, exponent = mantissa_and_exponent(x)
    return f"{mantissa}·10{str(exponent).translate(SUPERSCRIPTS)}"


def ratio(x: float) -> str:
    """A quotient of two measurements: ``3.7``, ``12``, ``340``."""
    return significant(x, 2)


def duration(milliseconds: float) -> str:
    """``7.4 ms``."""
    return f"{number(milliseconds)} ms"


def scientific(x: float | None, missing: str = MISSING) -> str:
    """For columns of errors, ASCII: ``2.1e-7``, ``0.0e0``, ``nan``; ``missing`` for None."""
    if x is None:
        return missing
    if not math.isfinite(x):
        return "nan"
    mantissa, exponent = mantissa_and_exponent(x)
    return f"{mantissa}e{exponent}"


def three_digits(x: float | None, missing: str = MISSING) -> str:
    """For columns of times and ratios, zeros kept: ``0.0321``, ``3.20``, ``32.1``, ``3210``; ``missing`` for None.

    Below 0.01 as ``scientific``.
    """
    if x == 0:
        return "0"
    if x is None or not math.isfinite(x) or abs(x) < 0.01:
        return scientific(x, missing)
    # The exponent after rounding: 9.996 is 10.0.
    exponent = int(f"{x:.2e}".partition("e")[2])
    return f"{x:.{max(2 - exponent, 0)}f}"


def significant(x: float, digits: int) -> str:
    """So many significant digits without trailing zeros; digits before the decimal point are never dropped."""
    # Compared after rounding: 999.7 is 1000, not 1e+03.
    return f"{x:.{digits}g}" if float(f"{abs(x):.{digits}g}") < 10**digits else f"{x:.0f}"


def mantissa_and_exponent(x: float) -> tuple[str, int]:
    """Of a finite number, the mantissa with one decimal."""
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    return mantissa, int(exponent)
