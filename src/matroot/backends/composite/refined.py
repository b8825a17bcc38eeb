"""Float64 roots and gradients from float32 ones, by iterative refinement.

With S near A^(1/2), Newton's step for S S = A is a Lyapunov equation, the one that the gradient solves:

    S D + D S = A - S S,   S <- S + D.

Only the residual needs float64, one product. A float32 solution of the equation reduces the error by as many digits as
float32 has beyond the condition number. The inverse root follows by R <- R + R E + R E^2 with E = I - S R, the gradient
by X <- X + D with S D + D S = G - S X - X S.
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
"""Of steps for the inverse root at most: each cubes a residual that begins below ``_NEAR``."""
_NEAR = 0.5
"""||I - S R||_F above which float32 tells too little. Below one, and with R positive definite, S is so too."""
_EXACT = 1e-10
"""A residual of the inverse root that leaves nothing to refine: what is computed of it next has no digits."""
_FEW_DIGITS = 1e-4
"""A residual of the inverse root from which on refinement gains too little a round."""
_HIDDEN = 0.02
"""Of rounding: a residual that does not matter."""
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
        if output != "sqrt":
            R, near = _refined_inverse(S, R, _INVERSE_ROUNDS, _EXACT)
            exact = exact & near
        usable = exact[:, None, None]
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
    R, near = _refined_inverse(S, R, 1, _FEW_DIGITS)
    narrow = narrow._replace(R=R.float())
    rounding = _ROUNDING * A.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None]
    size = expected = torch.full_like(rounding, torch.inf)
    for remaining in reversed(range(_ROUNDS + 1)):
        residual, before = torch.baddbmm(A, S, S, alpha=-1), size
        # What rounding hides of a residual is known from how many digits the rounds gain.
        size, active = _progress(residual, torch.where(expected > _HIDDEN * rounding, 0, rounding), before)
        slow = active & (size > _FEW_DIGITS * before)
        any_active, any_slow = torch.stack([active.any(), slow.any()]).tolist()
        if not remaining or not any_active:
            break
        expected = torch.where(before < torch.inf, size * size / before, torch.inf)
        if any_slow:
            # A solution is as exact as the roots that it is computed with.
            R = torch.where(slow, _refined_inverse(S, R, 1, 0.0)[0], R)
            narrow = narrow._replace(S=torch.where(slow, S.float(), narrow.S), R=R.float())
        S = torch.where(active, S + narrow.solve(residual), S)
    return S, R, near & (size <= 4 * rounding)[:, 0, 0]


def _refined_solution(S: Tensor, G: Tensor, narrow: _Narrow) -> Tensor:
    """X with S X + X S = G."""
    X, before = narrow.solve(G), _largest(G)
    unfinished = torch.ones_like(before, dtype=torch.bool)
    for _ in range(_ROUNDS):
        residual = G - 2 * torch_ops.hermitian(S @ X)
        # Of the sums in an entry of S X; those of S S are at most the largest diagonal entry of A.
        rounding = _ROUNDING * _longest_row(S) * _longest_row(X)
        size, active = _progress(residual, rounding, before)
        active = active & unfinished
        # The next round gains as many digits as this one did.
        unfinished = active & (size * size > rounding * before)
        any_active, any_unfinished = torch.stack([active.any(), unfinished.any()]).tolist()
        if any_active:
            X = torch.where(active, X + narrow.solve(residual), X)
        if not any_unfinished:
            break
        before = size
    return torch_ops.hermitian(X)


def _refined_inverse(S: Tensor, R: Tensor, rounds: int, tolerance: float) -> tuple[Tensor, Tensor]:
    """The inverse of S from R near it, by steps where it is less exact than this, and which were near enough, (k,)."""
    near = active = torch.ones_like(S[:, :1, :1], dtype=torch.bool)
    for _ in range(rounds):
        residual = torch.baddbmm(torch_ops.identity(S).expand_as(S), S, R, alpha=-1)
        size = torch_ops.frobenius(residual)
        near = near & (size < _NEAR)
        active = active & near & (size > tolerance)
        if not active.any():
            break
        # The cube of the residual is what is left.
        better = torch.baddbmm(R, torch.baddbmm(R, R, residual), residual)
        R = torch.where(active, torch_ops.hermitian(better), R)
    return R, near[:, 0, 0]


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
