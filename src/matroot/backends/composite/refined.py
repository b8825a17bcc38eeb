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
_SLOW = 1e-4
"""Where a round leaves more of an error, the next one is made with the roots that it refined."""
_INVERSE_ROUNDS = 4
"""Of steps for the inverse root at most: each cubes a residual that begins below ``_NEAR``."""
_NEAR = 0.5
"""||I - S R||_F above which float32 tells too little. Below one, and with R positive definite, S is so too."""
_CUBED = 3e-5
"""A residual whose cube is below rounding: float32 leaves it at condition 500, where float64 rounds to 1e-13."""


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
        usable = exact & near
        S, R = S * root_scale, R / root_scale
        if usable.all():
            return Evaluation(select(output, S, R))
        # Deferred matrices take part in the backward pass, with gradients of zero: their roots must be finite.
        eye = torch_ops.identity(S)
        S, R = (torch.where(usable, T, eye) for T in (S, R))
        return Evaluation(select(output, S, R), deferred=~usable[:, 0, 0])

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        # With c a power of two near the size of the root, A/c^2 has roots S/c and c R, which float32 can hold.
        c = _power_of_two_near(saved[0])
        S, R = saved[0] / c, _float32(saved[1], 1 / c)
        GS, GR = by_kind(cotangents, output)
        G = torch.zeros_like(S) if GS is None else torch_ops.hermitian(GS)
        if GR is not None:
            G = G - torch_ops.hermitian(saved[1] @ GR @ saved[1])
        unit = _power_of_two_near(G)
        narrow = S.float()
        G = G / unit
        X, inexact = _refined_solution(S, G, _Narrow(self.inner_for(narrow), narrow, R))
        if inexact is not None:
            index = inexact[:, 0, 0].nonzero()[:, 0]
            X[index] = Smith().solve(S[index], G[index], (c[index] * saved[1][index],))
        return torch_ops.add_ridge_term(X * (unit / c), ridge)


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

    def solve(self, right: Tensor, size: Tensor) -> Tensor:
        """X in float32 with S X + X S = right/size, symmetric; zero where the size is."""
        unit = _float32(right, torch.where(size > 0, size, 1))
        return self.backend.solve((self.S, self.R), (unit, None), 0.0, Smith(), "both")


def _scaled(A: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The symmetric part with the ridge, largest entry near one, and the square root of what it was divided by."""
    root_scale = torch_ops.root_of_scale(_largest(A))
    half = A * (0.5 / root_scale / root_scale)
    matrix = half + half.mT
    if ridge:
        matrix = torch_ops.add_ridge_term(matrix, ridge) / (1 + ridge)
        root_scale = root_scale * (1 + ridge) ** 0.5
    return matrix, root_scale


def _refined_root(A: Tensor, narrow: _Narrow) -> tuple[Tensor, Tensor, Tensor]:
    """Root and inverse root of A from float32 ones, the inverse not to the end; which roots are exact, (k, 1, 1)."""
    S, R = narrow.S.double(), narrow.R.double()
    n = A.shape[-1]
    scale = A.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None]
    rounding, at_small = _rounding(n) * scale, _rounding_of_image(n) * scale
    small = _small_directions(R)
    size = image = torch.full_like(scale, torch.inf)
    # What a round leaves of an error, at least: float32 loses the condition number, of which this is a lower bound.
    condition = (_longest_row(narrow.S) * _longest_row(narrow.R)).square().double()
    left = torch.finfo(torch.float32).eps * condition
    for remaining in reversed(range(_ROUNDS + 1)):
        residual, before = torch.baddbmm(A, S, S, alpha=-1), size
        size, image = _largest(residual), torch_ops.frobenius(residual @ small)
        active = ((size > rounding) | (image > at_small)) & (size < 0.5 * before)
        slow = active & (before < torch.inf) & (torch.maximum(left, size / before) > _SLOW)
        any_active, any_slow = torch.stack((active.any(), slow.any())).tolist()
        if not remaining or not any_active:
            break
        if any_slow:
            E, distance = _inverse_residual(S, R)
            R = torch.where(slow & (distance < _NEAR), _inverse_step(R, E), R)
            narrow = narrow._replace(S=torch.where(slow, S.float(), narrow.S), R=torch.where(slow, R.float(), narrow.R))
        S = torch.addcmul(S, narrow.solve(residual, size), torch.where(active, size, 0))
    return S, R, (size <= 4 * rounding) & (image <= 2 * at_small)


def _refined_solution(S: Tensor, G: Tensor, narrow: _Narrow) -> tuple[Tensor, Tensor | None]:
    """X with S X + X S = G, for S and G of moderate size; which are not exact, (k, 1, 1), None where all are.

    A solution D in float32 is one of an equation with S + E, and leaves E D + D E of a residual: of a D without a
    preferred direction (2/n)^(1/2) |E| |D| at least, of any 2 |E| |D| at most. What a round leaves is then

        |E D + D E| <= (2 n)^(1/2) |residual| |D|/|last D|.

    Residuals alone do not tell: where S is small, D is up to sqrt(kappa) times as large for the same residual.
    """
    n = S.shape[-1]
    size = torch_ops.frobenius(G)
    D = narrow.solve(G, size)
    X, norm = size * D, size * torch_ops.frobenius(D)
    # The smallest eigenvalue of the equation is 2/|R|, and S has an entry above one: an error of 8 eps kappa at most.
    rounding = torch.finfo(S.dtype).eps * norm
    limit = 16 * rounding * _longest_row(narrow.R).clamp_min(1)
    exact = torch.zeros_like(norm, dtype=torch.bool)
    active = ~exact
    for previous in range(_ROUNDS):
        half = torch.baddbmm(G, S, X, beta=0.5, alpha=-1)
        residual = half + half.mT
        size, last = torch_ops.frobenius(residual), norm
        D = narrow.solve(residual, size)
        norm = size * torch_ops.frobenius(D)
        active = active & (norm <= 0.5 * last)
        X = torch.addcmul(X, D, torch.where(active, size, 0))
        if not previous:
            continue  # float32 never needs less than two rounds
        exact = exact | (active & ((2 * n) ** 0.5 * size * norm <= limit * last))
        active = active & ~exact
        all_exact, any_active = torch.stack((exact.all(), active.any())).tolist()
        if all_exact:
            return X, None
        if not any_active:
            break
    return X, ~(exact | (size <= max(32.0, 0.5 * n) * rounding))


def _refined_inverse(S: Tensor, R: Tensor, wanted: bool) -> tuple[Tensor, Tensor]:
    """The inverse of S from R near it, to the end if ``wanted``, and which were near enough, (k, 1, 1)."""
    E, size = _inverse_residual(S, R)
    near = active = size < _NEAR
    for _ in range(_INVERSE_ROUNDS if wanted else 0):
        R = torch.where(active, _inverse_step(R, E), R)
        active = active & (size > _CUBED)
        if not active.any():
            break
        E, size = _inverse_residual(S, R)
        active = active & (size < _NEAR)
    return R, near


def _inverse_residual(S: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    """E = I - S R, and its norm (k, 1, 1)."""
    E = torch.baddbmm(torch_ops.identity(S).expand_as(S), S, R, alpha=-1)
    return E, torch_ops.frobenius(E)


def _inverse_step(R: Tensor, E: Tensor) -> Tensor:
    """R + R E + R E^2, symmetric: what it lacks to the inverse is the cube of E."""
    return torch_ops.hermitian(torch.baddbmm(R, torch.baddbmm(R, R, E), E))


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
    n = R.shape[-1]
    rows = torch.arange(n, device=R.device, dtype=R.dtype).square()
    # Irregular signs, which two powers of R turn towards its largest eigenvalues.
    V = torch.cos(rows[:, None] * torch.arange(1, 5, device=R.device)).sign().expand(len(R), n, 4)
    for _ in range(2):
        V = R @ V
        V = 0.5 * V / torch.linalg.vector_norm(V, dim=-2, keepdim=True)
    return V


def _float32(matrix: Tensor, divisor: Tensor) -> Tensor:
    """matrix/divisor in float32, in one pass."""
    return torch.div(matrix, divisor, out=torch.empty_like(matrix, dtype=torch.float32))


def _longest_row(matrix: Tensor) -> Tensor:
    """The largest Euclidean norm of a row, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, dim=-1, keepdim=True).amax(-2, keepdim=True)


def _largest(matrix: Tensor) -> Tensor:
    """The largest entry by absolute value, (k, 1, 1)."""
    return torch.linalg.vector_norm(matrix, torch.inf, (-2, -1), keepdim=True)


def _power_of_two_near(matrix: Tensor) -> Tensor:
    """At most the largest entry, and above half of it, (k, 1, 1); one for a matrix of zeros."""
    size = _largest(matrix)
    return torch.where(size > 0, torch.exp2(torch.floor(torch.log2(size))), 1)
