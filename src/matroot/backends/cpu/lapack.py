"""Eigendecompositions on the CPU: a part of the batch at a time, in few operations.

For one small matrix the operations around the decomposition take longer than the decomposition. Bits depend on where
in memory a matrix lies, as those of LAPACK do; results agree to rounding. Threads are those of LAPACK. Any other thread
that computes has a team of OpenMP threads of its own, and with more of these than cores every operation of the process
waits several times as long for its threads, as long as they live.
"""

import torch
from torch import Tensor

from ..._tracing import autocast_disabled
from ...gradients import Exact, Gradient
from ...methods import Eigen, Method
from ...methods._base import Output, is_inverse
from ...methods.eigen import clamp_eigenvalues, spectral_roots
from .. import torch_ops
from .._base import CallContext, Cotangents, Evaluation, FusedBackend, Tensors, by_kind, unsupported_pair
from .chunks import cache_sized_slices

_ILL_CONDITIONED = 300.0
"""Decompositions in float32 lose about as many digits of the smallest eigenvalues as the condition number has."""


class _EigenInFloat64(Eigen):
    """Decompositions in float64, rounded."""

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        values, vectors = torch_ops.eigh(A.to(torch_ops.WIDE.get(A.dtype, A.dtype)))
        return spectral_roots(values.to(torch_ops.real_dtype(A)), vectors.to(A.dtype), output)


class Lapack(FusedBackend):
    """``Eigen`` with ``Exact`` for all dtypes but the half ones."""

    name = "lapack"
    device_type = "cpu"

    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        if method != Eigen() or gradient != Exact():
            return f"it computes 'eigen' with 'exact', not {unsupported_pair(method, gradient)}"
        if context.dtype in (torch.float16, torch.bfloat16):
            return "it does not compute in half precision"
        if context.traced:
            return "not inside torch.compile"
        return "the process-wide precision of products is reduced" if context.reduced_precision else None

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        whole: list[Tensor] = []
        with autocast_disabled(A):
            for part in cache_sized_slices(len(A), A.shape[-1]):
                pieces = _evaluate(A[part], ridge, output)
                if len(pieces[0]) == len(A):
                    whole = [*pieces]
                    break
                whole = whole or [piece.new_empty(len(A), *piece.shape[1:]) for piece in pieces]
                for target, piece in zip(whole, pieces, strict=True):
                    target[part] = piece
        values, vectors, deferred, *roots = whole
        return Evaluation(tuple(roots), (values, vectors), deferred)

    def for_deferred(self, method: Method) -> Method:
        return _EigenInFloat64()

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        values, vectors = saved[-2:]
        GS, GR = (None if G is None else G.to(vectors.dtype) for G in by_kind(cotangents, output))
        X = torch.empty_like(vectors, memory_format=torch.contiguous_format)
        with autocast_disabled(X):
            for part in cache_sized_slices(*X.shape[:2]):
                S, R = (None if G is None else G[part] for G in (GS, GR))
                X[part] = solve_in_eigenbasis(clamp_eigenvalues(values[part]), vectors[part], S, R)
            return torch_ops.add_ridge_term(X, ridge)


def _evaluate(A: Tensor, ridge: float, output: Output) -> tuple[Tensor, ...]:
    values, vectors, deferred = decompose(A, ridge)
    functions = (
        torch.rsqrt(clamp_eigenvalues(values)) if inverse else torch.sqrt(values.clamp_min(0))
        for inverse in is_inverse(output)
    )
    return values, vectors, deferred, *(compose(vectors, f) for f in functions)


def decompose(A: Tensor, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues (k, n) and eigenvectors of the Hermitian parts of ``A`` (k, n, n); which are deferred, (k,).

    Deferred are matrices that hold NaN, are zero, at the ends of the dtype's range, or have a clearly negative
    eigenvalue; they get eigenvalues one. Ill-conditioned matrices are decomposed in float64, and the results rounded.
    """
    values, vectors = _eigh(A, ridge)
    ends = _ends(values)
    # LAPACK scales what is near the ends of the range by no power of two, so that results would have other bits.
    limit = torch.finfo(A.dtype).max ** 0.22
    far = [high > 0 and not 1 / limit < high < limit for _, high in ends]
    if any(far):
        index = torch.tensor(far, device=A.device)
        root_scale = torch_ops.root_of_scale(A[index].abs().amax((-2, -1), keepdim=True))
        far_values, vectors[index] = _eigh(A[index] / root_scale / root_scale, ridge)
        values[index] = far_values * root_scale[..., 0] * root_scale[..., 0]
        ends = _ends(values)
    # Between these no trace overflows, and eigenvalues down to eps of the largest are far from subnormal.
    limits = torch.finfo(A.dtype)
    least, most = limits.tiny / limits.eps**2, limits.max / A.shape[-1]
    rounding = -torch_ops.rounding_tolerance(A.shape[-1], A.dtype)
    usable = [least < high < most and low > rounding * high for low, high in ends]
    deferred = ~torch.tensor(usable, device=A.device)
    if not all(usable):
        values[deferred], vectors[deferred] = 1.0, torch_ops.identity(A)
    return values.mul_(0.5), vectors, deferred


def _eigh(A: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of A + A^H with the ridge on it; eigenvalues zero of matrices that hold NaN."""
    try:
        values, vectors = torch.linalg.eigh(_twice_symmetric(A, ridge))
    except torch.linalg.LinAlgError:
        X = _twice_symmetric(A, ridge)
        unusual = ~torch.isfinite(X).all(-1).all(-1)
        X[unusual] = torch_ops.identity(X)
        values, vectors = torch.linalg.eigh(X)
        values[unusual] = 0
    if A.dtype in torch_ops.WIDE:
        wide = values[:, 0] < values[:, -1] / _ILL_CONDITIONED
        if wide.any():
            exact_values, exact_vectors = torch.linalg.eigh(
                _twice_symmetric(A[wide].to(torch_ops.WIDE[A.dtype]), ridge)
            )
            values[wide], vectors[wide] = exact_values.to(values.dtype), exact_vectors.to(A.dtype)
    return values, vectors


def _ends(values: Tensor) -> list[tuple[float, float]]:
    """The least and the largest eigenvalue of each matrix, on the host."""
    return list(zip(*torch.stack((values[:, 0], values[:, -1])).tolist(), strict=True))


def compose(vectors: Tensor, values: Tensor) -> Tensor:
    """U diag(values) U^H, Hermitian to the last bit."""
    half = torch.bmm(vectors * (0.5 * values).unsqueeze(-2), vectors.mH)
    return half + half.mH


def solve_in_eigenbasis(values: Tensor, vectors: Tensor, GS: Tensor | None, GR: Tensor | None) -> Tensor:
    """X with S X + X S = GS - R GR R, given the eigenvalues, positive, of S^2; symmetric parts of GS and GR count.

    In the eigenbasis X_ij = GS_ij/(s_i + s_j) - GR_ij/(s_i s_j (s_i + s_j)).
    """
    s = torch.sqrt(values)
    i, j = s.unsqueeze(-1), s.unsqueeze(-2)
    inner = s.new_zeros(())
    if GS is not None:
        inner = torch.bmm(vectors.mH, torch.bmm(GS, vectors))
    if GR is not None:
        inner = inner - torch.bmm(vectors.mH, torch.bmm(GR, vectors)).div_(i * j)
    half = torch.bmm(vectors, torch.bmm(inner.div_(i + j), vectors.mH))
    return half.mul_(0.5).add(half.mH)


def _twice_symmetric(A: Tensor, ridge: float) -> Tensor:
    """A + A^H with the ridge on it, contiguous."""
    X = torch.add(A, A.mH, out=torch.empty(A.shape, dtype=A.dtype, device=A.device))
    if ridge:
        diagonal = X.diagonal(dim1=-2, dim2=-1)
        diagonal.add_(diagonal.sum(-1, keepdim=True), alpha=ridge / A.shape[-1])
    return X
