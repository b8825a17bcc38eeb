"""Coefficients of the fast path."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from ..constants import on_device
from .on_chip.schedules import in_powers_of_residual

Schedules = tuple[tuple[tuple[float, ...], ...], ...]
"""For growing condition numbers, each of steps of five coefficients; the first of them is that of the fast path."""

LIFT = (
    6.972866180172034, -30.645462930696013, 52.996928572174234, -36.68156319618287, 8.715238912078389,
)  # fmt: skip
"""Second step of the longer fast path, in powers of M: minimax for what the first step leaves of condition numbers up
to 3000, singular values of 0.09 to 1.34."""
NARROW = (
    2.6957396459345397, -4.0194966938795185, 3.706031550509109, -1.6752792956326188, 0.28995156266946687,
)  # fmt: skip
"""Its third step: minimax for what that leaves, 0.607 to 1.393."""

_TAYLOR = (0.0, 0.5, 0.375, 0.3125, 0.2734375)
"""Of (1 - e)^(-1/2) - 1 in powers of e."""


@cache
def coefficients(device: torch.device, schedules: Callable[[], Schedules]) -> Tensor:
    """The steps of the fast path, then those of the longer one: four each, of five coefficients."""
    first, second, *_ = schedules()[0]
    fast = (first, in_powers_of_residual(second), _TAYLOR, _TAYLOR)
    longer = (first, in_powers_of_residual(LIFT), in_powers_of_residual(NARROW), _TAYLOR)
    return on_device(device, (fast, longer))
