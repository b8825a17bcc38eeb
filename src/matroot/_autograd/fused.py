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


class FusedCall(NamedTuple):
    """What a call is besides its matrices and its ridge, worked out once for all calls like it."""

    backend: FusedBackend
    method: Method
    gradient: Gradient
    output: Output
    """What the caller asks for."""
    computed: Output
    """What is evaluated where a derivative may follow: both roots if the gradient needs them."""
    count: int
    """The number of roots that are then computed."""
    asked: slice
    """Where those asked for are among them."""
    prepared: set[bool]
    """Filled by the calls: whether derivatives may follow, of calls that the backend was prepared for."""


def fused_call(backend: FusedBackend, method: Method, gradient: Gradient, output: Output) -> FusedCall:
    """The description of a call that the backend supports."""
    computed = "both" if isinstance(gradient, ImplicitGradient) and gradient.needs_both else output
    kinds, asked = is_inverse(computed), is_inverse(output)
    first = kinds.index(asked[0])
    return FusedCall(backend, method, gradient, output, computed, len(kinds), slice(first, first + len(asked)), set())


def fused_roots(A: Tensor, ridge: float, call: FusedCall) -> tuple[Tensor, ...]:
    """The roots asked for of the caller's matrices, in their shape and dtype."""
    flat = A if A.ndim == 3 else A.reshape(-1, *A.shape[-2:])
    differentiable = needs_grad(A)
    if not compiling() and differentiable not in call.prepared:
        call.backend.prepare(flat, float(ridge), call.method, call.output, differentiable)
        call.prepared.add(differentiable)
    if differentiable:
        outputs = _FusedRoots.apply(flat, float(ridge), call)
        roots, deferred = outputs[call.asked], outputs[-1] if len(outputs) > call.count else None
    else:
        roots, _, deferred = _evaluate(flat, float(ridge), call, call.output)
    if deferred is not None and deferred.any():
        index = deferred.nonzero()[:, 0]
        method = call.backend.for_deferred(call.method)
        replaced = roots_by_torch_ops(flat[index], ridge, method, call.gradient, call.output)
        roots = tuple(root.index_copy(0, index, right) for root, right in zip(roots, replaced, strict=True))
    if flat is A and roots[0].dtype == A.dtype:
        return roots
    return tuple(root.to(A.dtype).view(A.shape) for root in roots)


def _evaluate(A: Tensor, ridge: float, call: FusedCall, output: Output) -> Evaluation:
    if compiling():  # an opaque operator, which computes both roots
        both = minimax_roots(A, ridge)
        return Evaluation(tuple([both[int(inverse)] for inverse in is_inverse(output)]))
    return call.backend.roots(A, ridge, call.method, output)


class _FusedRoots(Function):
    """(A) -> the roots; for spectral methods then eigenvalues, eigenvectors and which matrices are deferred."""

    @staticmethod
    def forward(ctx, A, ridge, call):
        ctx.call, ctx.ridge, ctx.dtype = call, ridge, A.dtype
        ctx.set_materialize_grads(False)
        roots, spectrum, deferred = _evaluate(A, ridge, call, call.computed)
        saved = roots + spectrum
        ctx.save_for_backward(*saved)
        if deferred is None:
            return saved
        ctx.mark_non_differentiable(*spectrum, deferred)
        return *saved, deferred

    @staticmethod
    def backward(ctx, *cotangents):
        saved, ridge, (backend, _, gradient, _, output, count, *_) = ctx.saved_tensors, ctx.ridge, ctx.call
        cotangents = cotangents[:count]
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None
        once, plain = not torch.is_grad_enabled(), all(map(is_plain_eager, used))
        if once and plain and backend.solves(gradient):
            X = backend.solve(saved, cotangents, ridge, gradient, output)
        elif once and plain:
            X = _solve_in_chunks(saved, cotangents, ridge, gradient, output)
        elif once and compiling():
            X = smith_solve(*saved, *cotangents, ridge)
        else:
            with autocast_disabled(saved[0]):
                X = torch_ops.add_ridge_term(_solve_by_torch_ops(saved, cotangents, gradient, output), ridge)
        return X if X.dtype == ctx.dtype else X.to(ctx.dtype), None, None


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
