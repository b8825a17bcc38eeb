"""Matrices without a root among others."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .matrices import spectrum, with_eigenvalues

NOT_FINITE = ("nan", "inf", "-inf")
INDEFINITE = ("indefinite", "slightly-indefinite")


def without_root(kind: str, A: Tensor) -> Tensor:
    """A matrix of this kind made of ``A`` (n, n)."""
    if kind == "indefinite":
        return A - 1.01 * torch.linalg.eigvalsh(A)[-1] * torch.eye(A.shape[-1], dtype=A.dtype)
    if kind == "slightly-indefinite":
        values = spectrum("log", A.shape[-1], 10.0)
        values[-1] = -0.01
        return with_eigenvalues(values, dtype=A.dtype)
    A = A.clone()
    A[0, 1] = float(kind)
    return A


def assert_harm_no_other(
    A: Tensor, places: tuple[int, int, int, int], results: Callable[[Tensor], Sequence[Tensor]]
) -> None:
    """A zero, a NaN, a negative and an infinite matrix at these places of ``A`` (k, n, n): zero results for the first,
    NaN for the others, and for all the rest the same bits as without them. For kernels and compiled code."""
    zero, nan, negative, infinite = places
    bad = A.clone()
    bad[zero], bad[nan, 1, -1], bad[negative], bad[infinite, 0, 0] = 0, float("nan"), -bad[negative], float("inf")
    good = torch.ones(len(A), dtype=torch.bool)
    good[list(places)] = False
    for right, other in zip(results(A), results(bad), strict=True):
        assert torch.equal(right[good], other[good])
        assert torch.isnan(other[[nan, negative, infinite]]).all()
        assert not other[zero].any()
