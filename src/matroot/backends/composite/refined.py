"""Float64 roots and gradients from float32 ones, by iterative refinement.

With S near A^(1/2), Newton's step for S S = A is a Lyapunov equation, the one that the gradient solves:

    S D + D S = A - S S,   S <- S + D.

Only the residual needs float64, one product. A float32 solution of the equation reduces the error by as many digits as
float32 has beyond the condition number. The inverse root follows by R <- R + R (I - S R), the gradient by X <- X + D
with S D + D S = G - S X - X S.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from ...gradients import Gradient, Smith
from ...methods import Method, Minimax
from ...methods._base import Output, select
from .. import torch_ops
from .._base import CallContext, Cotangents, Evaluation, FusedBackend, Tensors, by_kind
from ._base import CompositeBackend

_ROUNDS = 6
"""Of refinement at most; a matrix takes part in as many as reduce its residual."""
_INVERSE_ROUNDS = 6
"""Of R <- R + R (I - S R) at most: each squares a residual that begins below ``_NEAR``."""
_NEAR = 0.5
"""||I - S R||_F above which float32 tells too little. Below one, and with R positive definite, S is so too."""
_SQUARED = 1e-8
"""A residual whose square is below rounding."""
_ROUNDING = 8 * torch.finfo(torch.float64).eps
"""A residual that rounding alone may leave, relative to a bound of the sums in it."""


class Refined(CompositeBackend):
    """``Minimax`` with ``Smith`` in float64.

    Reads on the host whether another round is needed. Matrices that float32 knows too little about, from condition
    1e7 or so on, are deferred, and so are those without a root. On the CPU it is slower than compiled float64.
    """

    name = "refined"

    def inner_context(self, context: CallContext) -> CallContext | str:
        if context.dtype != torch.float64:
            return "it computes in float64"
        if context.captured:
            return "a CUDA graph cannot ask whether matrices converged"
        return context._replace(dtype=torch.float32)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        if A.is_cuda:
            prepare_for_graphs(A.device)
        matrix, root_scale = _scaled(A, ridge)
        narrow = matrix.float()
        inner = self.inner_for(narrow)
        S, R, exact = _refined_root(matrix, _Narrow(inner, *inner.roots(narrow, 0.0, method, "both").roots))
        R, near = _refined_inverse(S, R, output != "sqrt")
        usable = (exact & near)[:, None, None]
        # Deferred matrices take part in the backward pass, with gradients of zero: their roots must be finite.
        eye = torch_ops.identity(S)
        S, R = torch.where(usable, S * root_scale, eye), torch.where(usable, R / root_scale, eye)
        return Evaluation(select(output, S, R), deferred=~usable[:, 0, 0])

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        # With c a power of two near the size of the root, A/c^2 has roots S/c and c R, which float32 can hold.
        c = torch.exp2(torch.round(torch.log2(_largest(saved[0]))))
        S, R = saved[0] / c, c * saved[1]
        GS, GR = (None if G is None else torch_ops.hermitian(G) for G in by_kind(cotangents, output))
        G = torch.zeros_like(S) if GS is None else GS
        if GR is not None:
            G = G - torch_ops.hermitian(R @ GR @ R) / c / c
        narrow = S.float()
        X = _refined_solution(S, G, _Narrow(self.inner_for(narrow), narrow, R.float()))
        return torch_ops.add_ridge_term(X / c, ridge)


@cache
def prepare_for_graphs(device: torch.device) -> None:
    """Evaluate ``Minimax`` by ordinary operations once.

    A CUDA graph, for which values cannot be read, records those. It needs what it cannot make: their constants on the
    device, and the state of the libraries that they call. The call that came before it, to warm up, came here.
    """
    Minimax().evaluate(torch.eye(2, dtype=torch.float64, device=device), "both")


class _Narrow(NamedTuple):
    """Roots in float32, and the backend that solves Lyapunov equations with them."""

    backend: FusedBackend
    S: Tensor
    R: Tensor

    def solve(self, right: Tensor) -> Tensor:
        """X with S X + X S = right, in float64 to the digits of float32; zero where the right-hand side is."""
        size = _largest(right)
        unit = (right / torch.where(size > 0, size, 1)).float()
        return size * self.backend.solve((self.S, self.R), (unit, None), 0.0, Smith(), "both").double()


def _scaled(A: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The symmetric part with the ridge, largest entry near one, and the square root of what it was divided by."""
    matrix = torch_ops.hermitian(A)
    root_scale = torch_ops.root_of_scale(_largest(matrix))
    matrix = matrix / (root_scale * root_scale)
    if ridge:
        matrix = torch_ops.add_ridge_term(matrix, ridge) / (1 + ridge)
        root_scale = root_scale * (1 + ridge) ** 0.5
    return matrix, root_scale


def _refined_root(A: Tensor, narrow: _Narrow) -> tuple[Tensor, Tensor, Tensor]:
    """Root and inverse root of A from float32 ones, the inverse not to the end; which roots are exact, (k,)."""
    S, R = narrow.S.double(), narrow.R.double()
    rounding = _ROUNDING * A.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None]
    size = torch.full_like(rounding, torch.inf)
    for remaining in reversed(range(_ROUNDS + 1)):
        residual = torch.baddbmm(A, S, S, alpha=-1)
        size, active = _progress(residual, rounding, size)
        if not remaining or not active.any():
            break
        S = torch.where(active, torch_ops.hermitian(S + narrow.solve(residual)), S)
        # What the inverse root lacks is what the next solution would lack.
        R = torch.where(active, _inverse_step(S, R)[0], R)
        narrow = _Narrow(narrow.backend, S.float(), R.float())
    return S, R, (size <= 4 * rounding)[:, 0, 0]


def _refined_solution(S: Tensor, G: Tensor, narrow: _Narrow) -> Tensor:
    """X with S X + X S = G."""
    X = narrow.solve(G)
    size = torch.full_like(S[:, :1, :1], torch.inf)
    for _ in range(_ROUNDS):
        residual = G - 2 * torch_ops.hermitian(S @ X)
        # Of the sums in an entry of S X; those of S S are at most the largest diagonal entry of A.
        rounding = _ROUNDING * _longest_row(S) * _longest_row(X)
        size, active = _progress(residual, rounding, size)
        if not active.any():
            break
        X = torch.where(active, X + narrow.solve(residual), X)
    return torch_ops.hermitian(X)


def _refined_inverse(S: Tensor, R: Tensor, wanted: bool) -> tuple[Tensor, Tensor]:
    """The inverse of S from R near it, to the end if ``wanted``, and which were near enough, (k,)."""
    near = active = torch.ones_like(S[:, :1, :1], dtype=torch.bool)
    for _ in range(_INVERSE_ROUNDS if wanted else 1):
        better, size = _inverse_step(S, R)
        R = torch.where(active, better, R)
        near, active = near & (size < _NEAR), active & (size > _SQUARED) & (size < _NEAR)
        if not active.any():
            break
    return R, near[:, 0, 0]


def _inverse_step(S: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    """R + R (I - S R) where R is near the inverse of S, else R; and the norm of I - S R, (k, 1, 1)."""
    residual = torch.baddbmm(torch_ops.identity(S).expand_as(S), S, R, alpha=-1)
    size = torch_ops.frobenius(residual)
    return torch.where(size < _NEAR, torch_ops.hermitian(torch.baddbmm(R, R, residual)), R), size


def _progress(residual: Tensor, rounding: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """The largest entries of residuals, and where a round may reduce them: above rounding, and the last round did."""
    size = _largest(residual)
    return size, (size > rounding) & (size < 0.5 * before)


def _longest_row(matrix: Tensor) -> Tensor:
    """The largest Euclidean norm of a row, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, dim=-1, keepdim=True).amax(-2, keepdim=True)


def _largest(matrix: Tensor) -> Tensor:
    """The largest entry by absolute value, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, torch.inf, (-2, -1), keepdim=True)
