"""Steps of the longer fast path: what each of them leaves."""

import pytest
import torch

from matroot.backends.triton.tables import LIFT, NARROW, coefficients
from matroot.methods.minimax import kernel_schedules

primitives = pytest.importorskip("matroot.backends.triton.primitives")

FIRST = kernel_schedules()[0][0]


def image(step, low, high):
    """The least and the largest s q(s^2) for s from low to high."""
    s = torch.linspace(low, high, 20001, dtype=torch.float64)
    found = s * sum(c * s ** (2 * k) for k, c in enumerate(step))
    return found.min().item(), found.max().item()


def test_each_step_is_for_what_the_one_before_leaves():
    low, high = image(FIRST, 3000**-0.5, 1.0)
    assert low > 0.09
    assert high < 1.339
    low, high = image(LIFT, 0.0903, 1.339)
    assert low > 0.607
    assert high < 1.393


def test_the_last_step_suffices_for_what_they_leave():
    """For 1000 eigenvalues as far from one as any."""
    low, high = image(NARROW, 0.607, 1.393)
    residual = max(1 - low**2, high**2 - 1)
    assert 1000 * residual**4 < primitives.TAYLOR_THRESHOLD.value**2


def test_no_eigenvalue_beyond_them_is_taken_for_converged():
    """One near zero stays near zero; a negative one stays negative, whatever the polynomials."""
    s = 1e-4
    for step in (FIRST, LIFT, NARROW):
        s = image(step, s, s)[1]
    assert s < 0.02


def test_corrections_are_the_steps_in_powers_of_the_residual():
    """1 + D(1 - m) = q(m); the last step is Taylor's."""
    fast, longer = coefficients(torch.device("cpu"), kernel_schedules).reshape(2, -1, 5).double()
    assert torch.equal(longer[0], torch.tensor(FIRST, dtype=torch.float32).double())
    m = torch.linspace(0, 2, 21, dtype=torch.float64)
    for correction, step in zip(longer[1:3], (LIFT, NARROW), strict=True):
        found = 1 + sum(c * (1 - m) ** k for k, c in enumerate(correction))
        expected = sum(c * m**k for k, c in enumerate(step))
        assert torch.allclose(found, expected, atol=1e-5)
    assert torch.equal(longer[3], fast[2])
