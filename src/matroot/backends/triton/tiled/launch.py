"""Roots and gradients of matrices in tiles: the fast path, then the robust path for the matrices that it defers.

The host does not wait to learn which these are: the robust path is always launched, and ends at once if there are none.
"""

from collections.abc import Callable

from torch import Tensor

from ..launch import device_context
from ..tables import Schedules, coefficients
from . import fast_launch, robust_launch


def roots(
    A: Tensor, S: Tensor, R: Tensor, ridge: float, max_shift: float, schedules: Callable[[], Schedules], key: tuple
) -> None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n)."""
    table = coefficients(A.device, schedules)
    with device_context(A.device):
        deferred = fast_launch.roots(A, S, R, table, ridge, key)
        robust_launch.roots(A, S, R, table, deferred, ridge, max_shift, key)


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has_cotangent: dict[str, bool], key: tuple
) -> None:
    """X with S X + X S = GS - R GR R and the ridge term into ``out``, of the cotangents that are there."""
    inputs = (S, R, GS, GR)
    with device_context(S.device):
        deferred = fast_launch.solve(inputs, out, ridge, has_cotangent, key)
        robust_launch.solve(inputs, out, deferred, ridge, has_cotangent, key)
