"""Exact answers in float64 from eigenvectors that are known up to the rounding of the matrix."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .batches import Matrices

ROUNDS = 3
"""Newton's steps. The first eigenvectors are those before rounding: each step reduces the error by the rounding times
the condition number, which is below a tenth, and in random bases a hundredth. Two steps leave less than a thousandth of
a unit of rounding, in all dtypes."""


@dataclass(frozen=True)
class Exact:
    """A result (m, n, n) of the definite matrices at scale one, and what its errors are relative to (m,)."""

    value: Tensor
    size: Tensor


@dataclass(frozen=True)
class Answer:
    """What is exact of a batch, and its condition numbers (m,)."""

    root: Exact
    inverse: Exact
    gradient: Exact
    condition: Tensor


def answer_of(found: Matrices) -> Answer:
    """By S D + D S = A - S^2, R + R (I - S R) and the equation of the gradient, solved in nearly the eigenbasis."""
    A, U, values = found.scaled_A[found.good], found.vectors, found.values
    s = values.sqrt()

    def solve(C: Tensor) -> Tensor:
        return U @ ((U.mT @ C @ U) / (s[..., :, None] + s[..., None, :])) @ U.mT

    S = (U * s[..., None, :]) @ U.mT
    R = (U / s[..., None, :]) @ U.mT
    for _ in range(ROUNDS):
        S = S + solve(A - S @ S)
    for _ in range(ROUNDS):
        R = 2 * R - R @ S @ R
    parts = []
    if found.scaled_GS is not None:
        parts.append(found.scaled_GS[found.good])
    if found.scaled_GR is not None:
        parts.append(-R @ found.scaled_GR[found.good] @ R)
    gradients = []
    for C in parts:
        X = solve(C)
        for _ in range(ROUNDS):
            X = X + solve(C - S @ X - X @ S)
        gradients.append(X)
    norm = torch.linalg.matrix_norm
    # Of two gradients the sizes count, not that of their sum, in which digits may cancel.
    gradient = Exact(torch.stack(gradients).sum(0), torch.stack([norm(X) for X in gradients]).sum(0))
    return Answer(Exact(S, norm(S)), Exact(R, norm(R)), gradient, values.amax(-1) / values.amin(-1))


def singular_root(found: Matrices) -> Tensor:
    """The root (m, n, n) of matrices with zeros among their eigenvalues; rounding moves it by its own square root."""
    return (found.vectors * found.values.clamp(min=0).sqrt()[..., None, :]) @ found.vectors.mT
