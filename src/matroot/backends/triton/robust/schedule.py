"""Coefficients of the steps.

The first step is a polynomial of A/theta. The others are corrections 1 + D(e) in powers of e = 1 - m,
D = d1 e + d2 e^2 + d3 (e^3 + RATIO e^4): with one ratio for all of them E^2 + E/(2 RATIO) can be computed before it is
known which of them follows. A step maps a singular value s to s (1 + D(1 - s^2)).

All but the second step of the fast schedule leave s = 1 alone, so that steps may follow one another in any order. What
each is for is in the tests, as properties: the linear programs that found them maximised the slope at zero, or for the
second step minimised the largest error, under these.
"""

from functools import cache

import torch
from torch import Tensor

from ...constants import on_device

RATIO = 0.875
"""That of Taylor's polynomial."""

FIRST_FAST = (4.948460921628982, -11.370564069216275, 7.760011284215217)
"""Minimax for condition numbers up to 50; for what seems well-conditioned."""
FIRST = (3.82735146, -7.87630197, 5.14895051)
"""The steepest for which s stays below 1.1, and from 0.22 on above 0.7."""

FAST = (0.45357149, 0.31785691, 0.57379964)
"""Minimax for what FIRST_FAST leaves, 0.66 to 1.34."""
TAYLOR = (0.5, 0.375, 0.3125)
"""The last step."""
LIFT = (0.5, -0.15703352, 1.58302264)
"""The steepest for which s stays below 1.2, and from 0.22 up to 1.2 above 0.8; nothing comes near zero on its way."""
SETTLE = (0.5, -0.55625, 0.03)
"""Leaves s = 0 alone as well, and 1 + D is positive for every e. In a singular matrix rounding makes eigenvalues
negative, e above one: m from -1.9 on come to lie above -0.3, with the sign of Z as it was, and those below -2.5 grow,
which shows."""
HOLD = (0.5, 0.375, -0.875 / 1.875)
"""The same to third order for the eigenvalues that are not zero, after SETTLE: it changes the sign of Z for m < -0.32,
and the Lyapunov equation of an inverse root with a negative eigenvalue has no use."""

STEPS = (FAST, TAYLOR, LIFT, HOLD, SETTLE)


@cache
def coefficients(device: torch.device) -> Tensor:
    """Rows of three: FIRST_FAST, FIRST, and STEPS."""
    return on_device(device, (FIRST_FAST, FIRST, *STEPS))
