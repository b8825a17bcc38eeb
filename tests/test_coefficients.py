"""Exact rational coefficients against closed forms and independent derivations."""

import math
from fractions import Fraction

import pytest

from matroot.coefficients import pade, pade_in_x, pade_poles, taylor

DEGREES = (1, 2, 3, 4, 5, 6, 9, 16)


def value(polynomial, z):
    return sum(c * z**k for k, c in enumerate(polynomial))


def multiply(p, q):
    product = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            product[i + j] += a * b
    return product


def test_published_pade_coefficients():
    p, q = pade(5)
    assert [-c for c in q[1:]] == [Fraction(*c) for c in ((9, 4), (-7, 4), (35, 64), (-15, 256), (1, 1024))]
    assert [-c for c in p[1:]] == [Fraction(*c) for c in ((11, 4), (-11, 4), (77, 64), (-55, 256), (11, 1024))]


@pytest.mark.parametrize("degree", DEGREES)
def test_taylor_squares_to_its_argument(degree):
    square = multiply(taylor(degree), taylor(degree))
    assert square[: degree + 1] == [1, -1, *[0] * (degree - 1)]
    identity = multiply(taylor(degree), taylor(degree, inverse=True))
    assert identity[: degree + 1] == [1, *[0] * degree]


@pytest.mark.parametrize("degree", DEGREES)
def test_taylor_floor(degree):
    assert value(taylor(degree), Fraction(1)) == Fraction(math.comb(2 * degree, degree), 4**degree)


@pytest.mark.parametrize("degree", DEGREES)
def test_pade_matches_the_series(degree):
    numerator, denominator = pade(degree)
    matched = multiply(taylor(2 * degree), denominator)
    assert matched[: 2 * degree + 1] == [*numerator, *[0] * degree]


@pytest.mark.parametrize("degree", DEGREES)
def test_pade_of_the_inverse_root_is_the_reciprocal(degree):
    """Matching (1 - z)^(-1/2) instead gives the same two polynomials, exchanged."""
    numerator, denominator = pade(degree)
    matched = multiply(taylor(2 * degree, inverse=True), numerator)
    assert matched[: 2 * degree + 1] == [*denominator, *[0] * degree]


@pytest.mark.parametrize("degree", DEGREES)
def test_pade_closed_forms(degree):
    _, denominator = pade(degree)
    for k, coefficient in enumerate(denominator):
        assert abs(coefficient) == Fraction(math.comb(2 * degree - k, k), 4**k)
    in_x = [Fraction(math.comb(2 * degree + 1, k), 4**degree) for k in range(2 * degree + 2)]
    assert pade_in_x(degree) == (tuple(in_x[0::2]), tuple(in_x[1::2]))


@pytest.mark.parametrize("x", [1e-9, 1e-3, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("degree", DEGREES)
def test_pade_is_a_hyperbolic_cotangent(degree, x):
    z = 1 - Fraction(x)
    numerator, denominator = (value(p, z) for p in pade(degree))
    angle = math.inf if x == 1 else (2 * degree + 1) * math.atanh(math.sqrt(x))
    assert float(numerator / denominator) == pytest.approx(math.sqrt(x) / math.tanh(angle), rel=1e-14)


@pytest.mark.parametrize("degree", DEGREES)
def test_poles_lie_beyond_one(degree):
    report = pade_poles(degree)
    _, denominator = pade(degree)
    assert len(report.poles) == degree
    assert min(report.poles) > 1
    for pole in report.poles:
        # A simple zero: the exact polynomial changes sign across a tiny interval around it.
        below, above = (value(denominator, Fraction(pole) * (1 + s * Fraction(1, 10**9))) for s in (-1, 1))
        assert below * above < 0


def test_denominator_minimum():
    assert pade_poles(5).denominator_minimum == Fraction(11, 1024)
    assert pade_poles(5).numerator_minimum == Fraction(1, 1024)
    for degree in DEGREES:
        report = pade_poles(degree)
        for polynomial, least in zip(pade(degree), (report.numerator_minimum, report.denominator_minimum), strict=True):
            values = [value(polynomial, Fraction(k, 50)) for k in range(51)]
            assert min(values) == values[-1] == least


@pytest.mark.parametrize("function", [taylor, pade, pade_in_x, pade_poles])
@pytest.mark.parametrize("degree", [0, -1, 1.5, 2.0, "a"])
def test_bad_degree(function, degree):
    with pytest.raises(ValueError, match=f"degree must be a positive integer, got {degree!r}"):
        function(degree)
