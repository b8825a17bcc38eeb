"""Taylor and Pade coefficients of (1 - z)^(1/2) and (1 - z)^(-1/2), exactly.

Everything is computed in rational arithmetic and cached: any degree, no tables, no
rounding before the last conversion to float.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

Polynomial = tuple[Fraction, ...]
"""Coefficients in ascending powers."""


class PadePoles(NamedTuple):
    """What can go wrong with a diagonal Pade approximant on [0, 1], reported.

    Attributes:
        poles: zeros of the denominator in z, ascending.
        denominator_minimum: smallest value of the denominator for z in [0, 1], attained at z = 1.
        numerator_minimum: smallest value of the numerator for z in [0, 1], attained at z = 1.
    """

    poles: tuple[float, ...]
    denominator_minimum: Fraction
    numerator_minimum: Fraction


@cache
def taylor(degree: int, inverse: bool = False) -> Polynomial:
    """Taylor polynomial of (1 - z)^(1/2), or of (1 - z)^(-1/2), through z^degree.

    The k-th coefficient is (-1)^k C(power, k) with power = 1/2 or -1/2.

    Args:
        degree: the highest power, at least 1.
        inverse: whether the power is -1/2.

    Returns:
        Its degree + 1 coefficients in ascending powers of z, exact.

    Raises:
        ValueError: if the degree is not a positive integer.

    Example:
        >>> matroot.coefficients.taylor(2)
        (Fraction(1, 1), Fraction(-1, 2), Fraction(-1, 8))
    """
    _require_degree(degree)
    power = Fraction(-1, 2) if inverse else Fraction(1, 2)
    coefficients = [Fraction(1)]
    for k in range(1, degree + 1):
        coefficients.append(coefficients[-1] * (k - 1 - power) / k)
    return tuple(coefficients)


@cache
def pade(degree: int) -> tuple[Polynomial, Polynomial]:
    """Numerator P and denominator Q of the [degree, degree] approximant of (1 - z)^(1/2).

    Q is fixed by the vanishing of the coefficients degree+1 ... 2*degree of the series times Q, a linear system; P is
    what remains below. Q/P approximates (1 - z)^(-1/2).

    Args:
        degree: of both polynomials, at least 1.

    Returns:
        P and Q, each as coefficients in ascending powers of z, exact.

    Raises:
        ValueError: if the degree is not a positive integer.

    Example:
        >>> numerator, denominator = matroot.coefficients.pade(1)
        >>> numerator
        (Fraction(1, 1), Fraction(-3, 4))
    """
    _require_degree(degree)
    series = taylor(2 * degree)
    system = [[series[degree + i - j] for j in range(1, degree + 1)] for i in range(1, degree + 1)]
    denominator = (Fraction(1), *_solve(system, [-c for c in series[degree + 1 :]]))
    numerator = tuple(
        sum((denominator[j] * series[k - j] for j in range(k)), denominator[k]) for k in range(degree + 1)
    )
    return numerator, denominator


@cache
def pade_in_x(degree: int) -> tuple[Polynomial, Polynomial]:
    """The P and Q of :func:`pade` as polynomials in x = 1 - z.

    All coefficients are positive (binomials of 2*degree+1 over 4^degree), so evaluation in x has no cancellation, while
    in z their terms cancel to 1/4^degree near z = 1.

    Args:
        degree: of both polynomials, at least 1.

    Returns:
        P and Q, each as coefficients in ascending powers of x, exact.

    Raises:
        ValueError: if the degree is not a positive integer.

    Example:
        >>> numerator, denominator = matroot.coefficients.pade_in_x(1)
        >>> numerator
        (Fraction(1, 4), Fraction(3, 4))
    """
    _require_degree(degree)
    numerator, denominator = pade(degree)
    return _reflect(numerator), _reflect(denominator)


def pade_poles(degree: int) -> PadePoles:
    """Poles of the [degree, degree] approximant and its extremes on [0, 1].

    Positive coefficients in x = 1 - z rule out poles and zeros on [0, 1] and put the minimum at x = 0. The check is
    exact.

    Args:
        degree: of the approximant, at least 1.

    Returns:
        The poles and the minima of numerator and denominator.

    Raises:
        ArithmeticError: if the approximant had a pole or a zero on [0, 1].
        ValueError: if the degree is not a positive integer.

    Example:
        >>> matroot.coefficients.pade_poles(1).denominator_minimum
        Fraction(3, 4)
    """
    _require_degree(degree)
    numerator, denominator = pade_in_x(degree)
    if min(*numerator, *denominator) <= 0:
        raise ArithmeticError(f"the [{degree}, {degree}] approximant is not positive on [0, 1]")
    poles = [1 / math.cos(k * math.pi / (2 * degree + 1)) ** 2 for k in range(1, degree + 1)]
    return PadePoles(tuple(poles), denominator[0], numerator[0])


def _require_degree(degree: int) -> None:
    if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
        raise ValueError(f"degree must be a positive integer, got {degree!r}")


def _reflect(polynomial: Sequence[Fraction]) -> Polynomial:
    """Coefficients of p(1 - x) from those of p(z)."""
    degree = len(polynomial) - 1
    return tuple(
        sum(((-1) ** k * math.comb(m, k) * polynomial[m] for m in range(k, degree + 1)), Fraction(0))
        for k in range(degree + 1)
    )


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss-Jordan elimination in rational arithmetic."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = next(i for i in range(column, size) if rows[i][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [value / lead for value in rows[column]]
        for i in range(size):
            if i != column and rows[i][column] != 0:
                factor = rows[i][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [row[-1] for row in rows]
