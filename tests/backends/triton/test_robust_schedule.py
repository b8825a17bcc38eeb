"""Properties of the steps of the robust path."""

import numpy as np
import pytest

from matroot.backends.triton.robust import schedule
from matroot.methods.minimax import kernel_schedules

HOLDS = (schedule.SETTLE, schedule.SETTLE, schedule.HOLD, schedule.HOLD)


def corrected(step, s):
    d1, d2, d3 = step
    e = 1 - s * s
    return s * (1 + d1 * e + d2 * e**2 + d3 * (e**3 + schedule.RATIO * e**4))


def first(step, s):
    return s * (step[0] + step[1] * s**2 + step[2] * s**4)


def test_the_fast_schedule_is_minimax():
    """For condition 50: the first step is that of the other kernels, the second leaves an error of 1e-2."""
    assert kernel_schedules()[0][0][:3] == schedule.FIRST_FAST
    s = first(schedule.FIRST_FAST, np.linspace(50**-0.5, 1, 10000))
    assert abs(s - 1).max() < 0.34
    assert abs(corrected(schedule.FAST, s) - 1).max() < 1e-2


def test_the_first_step_leaves_what_lifts_are_for():
    s = np.linspace(0, 1, 10000)
    found = first(schedule.FIRST, s)
    assert found.max() < 1.1001
    assert found[s >= 0.22].min() > 0.699


def test_lifts_can_follow_one_another():
    """They take [0.22, 1.2] into [0.8, 1.2], and what is below into [0, 1.2], at least 3.6 times as large."""
    s = np.linspace(0, 1.2, 10000)
    found = corrected(schedule.LIFT, s)
    assert found.max() < 1.2001
    assert found[s >= 0.22].min() > 0.7999
    assert (found >= 3.6 * s)[s < 0.22].all()


@pytest.mark.parametrize("step", [schedule.TAYLOR, schedule.LIFT, schedule.HOLD, schedule.SETTLE])
def test_ones_stay(step):
    """To second order."""
    s = 1 + 1e-4 * np.linspace(-1, 1, 21)
    assert abs(corrected(step, s) - 1).max() < 4e-8


def test_holds_leave_small_eigenvalues_and_bring_the_others_to_one():
    s = np.linspace(0, 1, 1000)
    for step in HOLDS:
        assert (corrected(step, s) >= 0.999 * s).all()
        assert (corrected(step, s[s < 0.02]) <= 1.01 * s[s < 0.02]).all()
    large = np.linspace(0.8, 1.2, 100)
    for step in HOLDS:
        large = corrected(step, large)
    assert abs(large - 1).max() < 3e-6


def test_holds_leave_the_sign_of_inverse_roots():
    """At negative eigenvalues m of M, down to -1.9: Z is multiplied by 1 + D, which stays away from zero."""
    m = -np.geomspace(1e-6, 1.9, 1000)
    for step in HOLDS:
        factor = corrected(step, np.emath.sqrt(m)) / np.emath.sqrt(m)
        assert (factor.real > 0.2).all()
        m = m * factor.real**2


def test_settling_leaves_every_sign():
    """Also of what grows: that shows, and these matrices are shifted."""
    s = np.emath.sqrt(-np.geomspace(1e-6, 1e6, 10000))
    assert (corrected(schedule.SETTLE, s) / s).real.min() > 0.2
