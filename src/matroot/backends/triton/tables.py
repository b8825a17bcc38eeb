"""Coefficients of the kernels."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from ..constants import on_device

Schedules = tuple[tuple[tuple[float, ...], ...], ...]
"""Three, for growing condition numbers: six steps of five coefficients, the last of them Taylor's."""

_TAYLOR = (0.0, 0.5, 0.375, 0.3125, 0.2734375)
"""Of (1 - e)^(-1/2) - 1 in powers of e."""


@cache
def coefficients(device: torch.device, schedules: Callable[[], Schedules]) -> Tensor:
    """All schedules, and then the steps of the fast path."""
    return on_device(device, (*schedules(), _in_powers_of_residual(schedules()[0])))


def _in_powers_of_residual(steps: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """The first step as it is, then corrections in powers of I - M: that of the second, and Taylor's."""
    first, (c0, c1, c2, c3, c4), *rest = steps
    powers = (c0 + c1 + c2 + c3 + c4 - 1, -c1 - 2 * c2 - 3 * c3 - 4 * c4, c2 + 3 * c3 + 6 * c4, -c3 - 4 * c4, c4)
    return (first, powers, *[_TAYLOR for _ in rest])
