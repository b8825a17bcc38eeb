"""Coefficients of the steps of roots on chip: made by ``python tools/minimax_schedules.py``, which prints them.

Steps map a singular value s to s q(s^2), q in ascending powers. The first takes [0.102, 1] to [0.55, 1.45], and the
wide one [0.083, 1.45] to the same; smaller s they enlarge by q(0) at most. The narrow one takes [0.55, 1.45] to one
within 0.01, for Taylor's polynomial to complete. Steps for wider intervals would be fewer, but they take large s close
to zero on the way, which costs digits.
"""

from functools import cache

import torch
from torch import Tensor

from ...constants import on_device

Polynomial = tuple[float, ...]

FIRST = (5.584676026096182, -13.810292334469839, 9.675616308373634)
WIDE = (6.842820401839599, -26.585508891887272, 39.71475626049652, -23.598657455413566, 4.801346060579203)
NARROW = (2.7835198177496974, -4.303195984016715, 3.9887323130600723, -1.7729699214131343, 0.2971408147361688)
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
