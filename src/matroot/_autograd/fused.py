"""Roots by a fused backend as one differentiable step.

What ``_autograd.roots`` does one operation after another, a fused backend does in cache or on chip: cleaning,
evaluation, restoring, and the solution of the gradient's Lyapunov equation. Second derivatives, and
derivatives inside a batching transform, are those of ordinary operations on the roots.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from .._tracing import autocast_disabled, compiling, is_plain_eager, needs_grad
from ..backends import torch_ops
from ..backends._base import Evaluation, FusedBackend
from ..backends.cpu.chunks import cache_sized_slices
from ..gradients import Gradient
from ..gradients._base import ImplicitGradient
from ..methods import Method
from ..methods._base import Output, is_inverse
from .ops import minimax_roots, smith_solve
from .roots import roots_by_torch_ops, vjp


def fused_roots(
    A: Tensor, ridge: float, backend: FusedBackend, method: Method, gradient: Gradient, output: Output
) -> tuple[Tensor, ...]:
    """The roots asked for of the caller's matrices, in their shape and dtype."""
    flat = A if A.ndim == 3 else A.reshape(-1, *A.shape[-2:])
    if needs_grad(A):
        found = _differentiable(flat, float(ridge), backend, method, gradient, output)
    else:
        found = _evaluate(flat, float(ridge), backend, method, output)
    roots = found.roots
    if found.deferred is not None and found.deferred.any():
        index = found.deferred.nonzero()[:, 0]
        replaced = roots_by_torch_ops(flat[index], ridge, method, gradient, output)
        roots = tuple(root.index_copy(0, index, right) for root, right in zip(roots, replaced, strict=True))
    if A.ndim == 3 and roots[0].dtype == A.dtype:
        return roots
    return tuple(root.to(A.dtype).view(A.shape) for root in roots)


def _evaluate(A: Tensor, ridge: float, backend: FusedBackend, method: Method, output: Output) -> Evaluation:
    if compiling():  # an opaque operator, which computes both roots
        both = minimax_roots(A, ridge)
        return Evaluation(tuple([both[int(inverse)] for inverse in is_inverse(output)]))
    return backend.roots(A, ridge, method, output)


def _differentiable(
    A: Tensor, ridge: float, backend: FusedBackend, method: Method, gradient: Gradient, output: Output
) -> Evaluation:
    computed = "both" if isinstance(gradient, ImplicitGradient) and gradient.needs_both else output
    outputs = _FusedRoots.apply(A, _Call(ridge, backend, method, gradient, computed))
    kinds = is_inverse(computed)
    roots = tuple([outputs[kinds.index(inverse)] for inverse in is_inverse(output)])
    return Evaluation(roots, deferred=outputs[-1] if len(outputs) > len(kinds) else None)


class _Call(NamedTuple):
    """What a call is besides its matrices; one argument, since autograd looks at each."""

    ridge: float
    backend: FusedBackend
    method: Method
    gradient: Gradient
    output: Output


class _FusedRoots(Function):
    """(A) -> the roots; for spectral methods then eigenvalues, eigenvectors and which matrices are deferred."""

    @staticmethod
    def forward(ctx, A, call):
        ctx.call, ctx.dtype = call, A.dtype
        ctx.set_materialize_grads(False)
        found = _evaluate(A, call.ridge, call.backend, call.method, call.output)
        saved = (*found.roots, *found.spectrum)
        ctx.save_for_backward(*saved)
        if found.deferred is None:
            return saved
        ctx.mark_non_differentiable(*found.spectrum, found.deferred)
        return *saved, found.deferred

    @staticmethod
    def backward(ctx, *cotangents):
        saved, (ridge, backend, _, gradient, output) = ctx.saved_tensors, ctx.call
        cotangents = cotangents[: len(is_inverse(output))]
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None
        if torch.is_grad_enabled() or not (compiling() or all(map(is_plain_eager, used))):
            with autocast_disabled(saved[0]):
                X = torch_ops.add_ridge_term(_solve_by_torch_ops(saved, cotangents, gradient, output), ridge)
        elif compiling():
            X = smith_solve(*saved, *cotangents, ridge)
        elif backend.solves(gradient):
            X = backend.solve(saved, cotangents, ridge, gradient, output)
        else:
            X = _solve_in_chunks(saved, cotangents, ridge, gradient, output)
        return X if X.dtype == ctx.dtype else X.to(ctx.dtype), None


def _solve_in_chunks(saved, cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
    X = torch.empty_like(saved[0])
    with autocast_disabled(X):
        for part in cache_sized_slices(*X.shape[:2]):
            upstream = [None if G is None else G[part] for G in cotangents]
            X[part] = _solve_by_torch_ops([T[part] for T in saved], upstream, gradient, output)
        return torch_ops.add_ridge_term(X, ridge)


def _solve_by_torch_ops(saved, cotangents, gradient: Gradient, output: Output) -> Tensor:
    """The gradient without the ridge's term, in operations that can be differentiated or batched.

    With c a power of two near the size of the root, A/c^2 has roots S/c and c R, and solvers meet matrices
    of moderate size. Where the root is zero so is the gradient, and the identity replaces it.
    """
    kinds = is_inverse(output)
    roots, spectrum = saved[: len(kinds)], saved[len(kinds) :]
    zero = torch_ops.frobenius(roots[0].detach()) == 0
    roots = [torch.where(zero, torch_ops.identity(T), T) for T in roots]
    size = torch_ops.frobenius(roots[0].detach())
    size = torch.exp2(torch.round(torch.log2(size / roots[0].shape[-1] ** 0.5)))
    c = 1 / size if output == "invsqrt" else size
    scaled = [c * root if inverse else root / c for root, inverse in zip(roots, kinds, strict=True)]
    if spectrum:
        values, vectors = spectrum
        scaled += [values / c[..., 0] / c[..., 0], vectors]
    upstream = [
        None if G is None else torch_ops.hermitian(G / c if inverse else c * G)
        for G, inverse in zip(cotangents, kinds, strict=True)
    ]
    return torch.where(zero, 0, vjp(scaled, upstream, c * c, gradient, output) / c / c)
