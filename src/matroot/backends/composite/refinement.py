"""Rounds of refinement: float64 roots and solutions of their Lyapunov equation from float32 ones.

With S near A^(1/2), Newton's step for S S = A is a Lyapunov equation, the one that the gradient solves:

    S D + D S = A - S S,   S <- S + D.

Only the residual needs float64, one product. A float32 solution of the equation reduces the error by as many digits as
float32 has beyond the condition number. The inverse root follows by R <- R + R E + R E^2 with E = I - S R, the gradient
by X <- X + D with S D + D S = G - S X - X S.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ...gradients import Smith
from .. import torch_ops
from .._base import FusedBackend

_ROUNDS = 6
"""Of refinement at most; a matrix takes part in as many as reduce its residual."""
_SLOW = 1e-4
"""Where a round leaves more of an error, the next one is made with the roots that it refined."""
_INVERSE_ROUNDS = 4
"""Of steps for the inverse root at most: each cubes a residual that begins below ``_NEAR``."""
_NEAR = 0.5
"""||I - S R||_F above which float32 tells too little. Below one, and with R positive definite, S is so too."""
_CUBED = 3e-5
"""A residual whose cube is below rounding: float32 leaves it at condition 500, where float64 rounds to 1e-13."""


class Narrow(NamedTuple):
    """Roots in float32, and the backend that solves Lyapunov equations with them."""

    backend: FusedBackend
    S: Tensor
    R: Tensor

    def solve(self, right: Tensor, unit: Tensor) -> Tensor:
        """X in float32 with S X + X S = right/unit, symmetric."""
        return self.backend.solve((self.S, self.R), (narrowed(right, unit), None), 0.0, Smith(), "both")


def root(A: Tensor, narrow: Narrow) -> tuple[Tensor, Tensor, Tensor]:
    """Root and inverse root of A from float32 ones, the inverse not to the end; which roots are exact, (k,).

    Exact is a root whose residual is rounding, or would be by ``_left_of_residual``: what is left along the smallest
    eigenvalue moves the inverse root by 8 eps kappa at most.
    """
    S, R = narrow.S.double(), narrow.R.double()
    n = A.shape[-1]
    small = _small_directions(R)
    numbers = A.diagonal(dim1=-2, dim2=-1).amax(-1), _longest_row(narrow.S), _longest_row(narrow.R)
    last_size = torch.full((len(A),), torch.inf, dtype=torch.float64, device="cpu")
    exact = settled = torch.zeros_like(last_size, dtype=torch.bool)
    last_norm = None
    for remaining in reversed(range(_ROUNDS + 1)):
        residual = torch.baddbmm(A, S, S, alpha=-1)
        entry = largest(residual)
        size, image, scale, row_S, row_R = _on_host(entry, torch_ops.frobenius(residual @ small), *numbers)
        rounding, at_small = _rounding(n) * scale, _rounding_of_image(n) * scale
        exact = settled | ((size <= 4 * rounding) & (image <= 2 * at_small))
        active = ((size > rounding) | (image > at_small)) & (size < 0.5 * last_size) & ~settled
        if not remaining or not active.any():
            break
        if last_norm is not None:
            # What a round leaves of an error: float32 loses the condition number, of which this is a lower bound.
            left = torch.maximum(torch.finfo(torch.float32).eps * (row_S * row_R).square(), size / last_size)
            R, narrow = _renewed(S, R, narrow, active & (left > _SLOW))
        unit = nonzero(entry)
        D = narrow.solve(residual, unit)
        S, norm = torch.addcmul(S, D, _only(active, unit)), unit * torch_ops.frobenius(D)
        if last_norm is not None:
            next_residual = _left_of_residual(n, *_on_host(torch_ops.frobenius(residual), norm, last_norm))
            settled = settled | (active & (next_residual <= 16 * torch.finfo(A.dtype).eps * scale))
            exact = exact | settled
            if not (active & ~settled).any():
                break
        last_size, last_norm = size, norm
    return S, R, exact


def _renewed(S: Tensor, R: Tensor, narrow: Narrow, chosen: Tensor) -> tuple[Tensor, Narrow]:
    """R nearer to the inverse of S, and roots in float32 from both, for the chosen matrices."""
    if not chosen.any():
        return R, narrow
    E, distance = _inverse_residual(S, R)
    index = chosen.to(S.device)[:, None, None]
    R = torch.where(index & (distance < _NEAR), _inverse_step(R, E), R)
    S32, R32 = (torch.where(index, T.float(), old) for T, old in ((S, narrow.S), (R, narrow.R)))
    return R, narrow._replace(S=S32, R=R32)


def solution(S: Tensor, G: Tensor, narrow: Narrow) -> tuple[Tensor, Tensor | None]:
    """X with S X + X S = G, for S and G of moderate size; which are not exact, (k,), None where all are.

    Residuals alone do not tell: where S is small, D is up to sqrt(kappa) times as large for the same residual.
    """
    n, eps = S.shape[-1], torch.finfo(S.dtype).eps
    unit = nonzero(torch_ops.frobenius(G))
    D = narrow.solve(G, unit)
    X, last_norm = unit * D, unit * torch_ops.frobenius(D)
    numbers = last_norm, _longest_row(narrow.R)
    exact = rounded = torch.zeros(len(S), dtype=torch.bool, device="cpu")
    active = ~exact
    for previous in range(_ROUNDS):
        half = torch.baddbmm(G, S, X, beta=0.5, alpha=-1)
        residual = half + half.mT
        size = torch_ops.frobenius(residual)
        unit = nonzero(size)
        D = narrow.solve(residual, unit)
        norm = unit * torch_ops.frobenius(D)
        of_residual, of_D, of_last, of_X, of_R = _on_host(size, norm, last_norm, *numbers)
        active = active & (of_D <= 0.5 * of_last)
        X, last_norm = torch.addcmul(X, D, _only(active, unit)), norm
        # The smallest eigenvalue of the equation is 2/|R|, and S has an entry above one: an error of 8 eps kappa at
        # most. Float32 never needs less than two rounds.
        limit = 16 * eps * of_X * of_R.clamp_min(1)
        exact = exact | active & (previous > 0) & (_left_of_residual(n, of_residual, of_D, of_last) <= limit)
        rounded = of_residual <= max(32.0, 0.5 * n) * eps * of_X
        active = active & ~exact
        if exact.all():
            return X, None
        if not active.any():
            break
    return X, ~(exact | rounded)


def _left_of_residual(n: int, residual: Tensor, norm: Tensor, last_norm: Tensor) -> Tensor:
    """What a round leaves of a residual, given the norms of the residual, of the solution D, and of the last D.

    A solution D in float32 is one of an equation with S + E, and leaves E D + D E of a residual: of a D without a
    preferred direction (2/n)^(1/2) |E| |D| at least, of any 2 |E| |D| at most. So

        |E D + D E| <= (2 n)^(1/2) |residual| |D|/|last D|.
    """
    return (2 * n) ** 0.5 * residual * norm / last_norm


def inverse(S: Tensor, R: Tensor, wanted: bool) -> tuple[Tensor, Tensor]:
    """The inverse of S from R near it, to the end if ``wanted``, and which were near enough, (k,)."""
    E, size = _inverse_residual(S, R)
    (distance,) = _on_host(size)
    near = active = distance < _NEAR
    for _ in range(_INVERSE_ROUNDS if wanted else 0):
        step = _inverse_step(R, E)
        R = step if active.all() else torch.where(active.to(S.device)[:, None, None], step, R)
        active = active & (distance > _CUBED)
        if not active.any():
            break
        E, size = _inverse_residual(S, R)
        (distance,) = _on_host(size)
        active = active & (distance < _NEAR)
    return R, near


def _inverse_residual(S: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    """E = I - S R, and its norm (k, 1, 1)."""
    E = torch.baddbmm(torch_ops.identity(S).expand_as(S), S, R, alpha=-1)
    return E, torch_ops.frobenius(E)


def _inverse_step(R: Tensor, E: Tensor) -> Tensor:
    """R + R E + R E^2, symmetric: what it lacks to the inverse is the cube of E."""
    return torch_ops.hermitian(torch.baddbmm(R, torch.baddbmm(R, R, E), E))


def _on_host(*numbers: Tensor) -> Tensor:
    """Numbers for each matrix as rows (k,) on the host, in one transfer.

    All decisions are taken there: a device takes longer to be told of an operation on k numbers than the host to do it.
    """
    return torch.stack([number.reshape(-1).double() for number in numbers]).cpu()


def _only(active: Tensor, unit: Tensor) -> Tensor:
    """The unit (k, 1, 1) of active matrices, zero for others."""
    return unit if active.all() else torch.where(active.to(unit.device)[:, None, None], unit, 0)


def nonzero(size: Tensor) -> Tensor:
    """A size to divide by: a matrix of zeros stays one."""
    return size.clamp_min(torch.finfo(size.dtype).tiny)


def _rounding(n: int) -> float:
    """A residual that rounding alone may leave, relative to a bound of the sums of n terms in it."""
    return max(8.0, 2 * n**0.5) * torch.finfo(torch.float64).eps


def _rounding_of_image(n: int) -> float:
    """The same for the product of a residual and a unit vector, of whose sums each is rounded for itself."""
    return max(8.0, 0.5 * n**0.5) * torch.finfo(torch.float64).eps


def _small_directions(R: Tensor) -> Tensor:
    """Vectors near the eigenvectors of the smallest eigenvalues of the root, (k, n, 4), of norm one together.

    With s the smallest one and v its vector, a residual r v v^T is an error of r/(2 s) of the root: relative to the
    inverse root one of kappa r/2, and three times that to its gradient. Its entries do not tell it: where v has no
    large ones they are r/n, what rounding leaves in any entry. Its product with v has the norm r, to which rounding
    adds sqrt(n) of an entry's, not n.
    """
    V = R @ (R @ _irregular_signs(R.shape[-1], R.device).expand(len(R), -1, -1))
    return V * (0.5 / torch.linalg.vector_norm(V, dim=-2, keepdim=True))


@lru_cache(maxsize=64)
def _irregular_signs(n: int, device: torch.device) -> Tensor:
    """Four vectors of ones of either sign, (n, 4): two powers of R turn them towards its largest eigenvalues."""
    rows = torch.arange(n, device=device, dtype=torch.float64).square()
    return torch.cos(rows[:, None] * torch.arange(1, 5, device=device)).sign()


def narrowed(matrix: Tensor, divisor: Tensor) -> Tensor:
    """matrix/divisor in float32, in one pass."""
    return torch.div(matrix, divisor, out=torch.empty_like(matrix, dtype=torch.float32))


def _longest_row(matrix: Tensor) -> Tensor:
    """The largest Euclidean norm of a row, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, dim=-1, keepdim=True).amax(-2, keepdim=True)


def largest(matrix: Tensor) -> Tensor:
    """The largest entry by absolute value, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, torch.inf, (-2, -1), keepdim=True)
