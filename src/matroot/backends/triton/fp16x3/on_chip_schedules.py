"""Coefficients of the steps of roots on chip: made by ``python tools/minimax_schedules.py``, which prints them.

Steps map a singular value s to s q(s^2), q in ascending powers. The first takes [0.087, 1] to [1/2, 3/2], and the wide
one [0.0734, 3/2] to the same; smaller s they enlarge by q(0) at most. The narrow one takes [1/2, 3/2] to one within
0.018, and Taylor's polynomial completes them. Steps for wider intervals would be fewer, but they take large s close to
zero on the way, which costs digits.
"""

from functools import cache

import torch
from torch import Tensor

from ...constants import on_device

Polynomial = tuple[float, ...]

FIRST = (5.8612663377919425, -14.879893145420679, 10.518626807627468)
WIDE = (6.948911246271732, -25.918491603998742, 36.515578533737994, -20.369432724899156, 3.8834333075657503)
NARROW = (2.878524684134906, -4.610474474004516, 4.2864031015433355, -1.870931241848098, 0.30373061883211344)
TAYLOR = (315 / 128, -105 / 32, 189 / 64, -45 / 32, 35 / 128)


def in_powers_of_residual(q: Polynomial) -> Polynomial:
    """q(m) - 1 in ascending powers of 1 - m, q of degree 4."""
    c0, c1, c2, c3, c4 = q
    return (c0 + c1 + c2 + c3 + c4 - 1, -c1 - 2 * c2 - 3 * c3 - 4 * c4, c2 + 3 * c3 + 6 * c4, -c3 - 4 * c4, c4)


@cache
def coefficients(device: torch.device) -> Tensor:
    """A row of six for each step: the first as it is, others in powers of the residual, and last of all q(0)."""
    others = tuple([(*in_powers_of_residual(q), q[0]) for q in (WIDE, NARROW, TAYLOR)])
    return on_device(device, ((*FIRST, 0.0, 0.0, FIRST[0]), *others))
