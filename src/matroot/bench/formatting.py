"""Numbers as text, the same in terminals, tables and the report."""

import math

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(x: float | None, *, ascii_only: bool = False, missing: str = "-") -> str:
    """``0.354``, ``1234``, ``2.1·10⁻⁷`` (``2.1e-7`` with ``ascii_only``), ``nan``, or ``missing`` for None."""
    if x is None:
        return missing
    if x == 0:
        return "0"
    if not math.isfinite(x):
        return f"{x:g}"
    if 1e-2 <= abs(x) < 1e5:
        return significant(x, 3)
    mantissa, exponent = scientific(x)
    return f"{mantissa}e{exponent}" if ascii_only else f"{mantissa}·10{str(exponent).translate(SUPERSCRIPTS)}"


def ratio(x: float) -> str:
    """A quotient of two measurements, with two digits: ``3.7``, ``12``, ``340``."""
    return significant(x, 2)


def duration(milliseconds: float) -> str:
    """``7.4 ms``."""
    return f"{number(milliseconds)} ms"


def significant(x: float, digits: int) -> str:
    """At most so many significant digits, never an exponent for large numbers: all digits before the point stay."""
    # What rounds up to the next power of ten is printed as that integer: 999.7 is 1000, not 1e+03.
    return f"{x:.{digits}g}" if float(f"{abs(x):.{digits}g}") < 10**digits else f"{x:.0f}"


def scientific(x: float) -> tuple[str, int]:
    """Mantissa with one decimal, and exponent, of a finite number."""
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    return mantissa, int(exponent)
