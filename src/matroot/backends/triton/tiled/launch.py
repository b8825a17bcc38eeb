"""Roots and gradients of matrices in tiles: the fast path, then the robust path for the matrices that it defers.

The host does not wait to learn which these are: the robust path is always launched, and ends at once if there are none.
Matrices larger than the fast path is made for are all deferred.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..launch import device_context
from ..robust import launch as robust
from ..tables import Schedules, coefficients
from . import fast_launch
from .tiles import FLAGS

LARGEST_FAST = 1024
"""Size up to which there is a fast path."""


def roots(
    A: Tensor, S: Tensor, R: Tensor, ridge: float, max_shift: float, schedules: Callable[[], Schedules], key: tuple
) -> None:
    """Roots into S and inverse roots into R of the symmetric parts of ``A`` (k, n, n)."""
    with device_context(A.device):
        if A.shape[-1] > LARGEST_FAST:
            deferred = all_deferred(A)
        else:
            deferred = fast_launch.roots(A, S, R, coefficients(A.device, schedules), ridge, max_shift, key)
        if deferred is not None:
            robust.roots(A, S, R, deferred, ridge, max_shift, key)


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has_S: bool, has_R: bool, key: tuple
) -> None:
    """X with S X + X S = GS - R GR R and the ridge term into ``out``, of the cotangents that are there."""
    inputs = (S, R, GS, GR)
    with device_context(S.device):
        if S.shape[-1] > LARGEST_FAST:
            deferred = all_deferred(S)
        else:
            deferred = fast_launch.solve(inputs, out, ridge, {"HAS_S": has_S, "HAS_R": has_R}, key)
        if deferred is not None:
            robust.solve(inputs, out, deferred, ridge, has_S, has_R, key)


def batches_of_all_kernels(n: int, device: torch.device) -> tuple[int, ...]:
    """Batches that between them launch every kernel which batches of any size do."""
    return (1,) if n > LARGEST_FAST else fast_launch.batches_of_all_kernels(n, device)


def all_deferred(A: Tensor) -> Tensor:
    """Flags of all matrices, with the counters of barriers at zero."""
    deferred = torch.zeros(len(A), FLAGS.value, dtype=torch.int32, device=A.device)
    deferred[:, 0] = 1
    return deferred
