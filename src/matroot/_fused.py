"""The pipeline as one differentiable step: compiled code or chunks on the CPU, kernels on a GPU.

What ``_inputs``, a method and ``_rule`` do one after another is done here in memory that stays in cache or on chip,
and no matrix affects another.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import Function

from . import _fused_paper, _ops
from ._plan import Plan
from ._rule import pull_back
from ._tracing import compiling, concrete, full_precision, plain, recording
from .backends import cpu_eigen, eager, native
from .gradients import Exact, Gradient, Smith
from .methods import Minimax
from .methods._base import Wanted, inverses
from .methods.eigen import floored
from .methods.minimax import native_schedules

Pipeline = Callable[[Tensor, float, Plan, Wanted], tuple[Tensor, ...]]


def fused_roots(A: Tensor, ridge: float, plan: Plan, wanted: Wanted, otherwise: Pipeline) -> tuple[Tensor, ...]:
    """The wanted roots of the caller's matrices; ``otherwise`` does those that need more care."""
    flat = A if A.ndim == 3 else A.reshape(-1, *A.shape[-2:])
    if plan.backend == "chunks":
        with full_precision(A):
            found = _in_chunks(flat, ridge, plan, wanted, otherwise)
    elif not isinstance(plan.method, Minimax):
        found = _paper(flat, float(ridge), plan, wanted)
    else:
        ridge = float(ridge)
        both = _Minimax.apply(flat, ridge, plan.gradient) if recording(A) else _minimax(flat, ridge, wanted)
        found = tuple([both[inverse] for inverse in inverses(wanted)])
    if A.ndim == 3 and found[0].dtype == A.dtype:
        return found
    return tuple(root.to(A.dtype).view(A.shape) for root in found)


def _minimax(A: Tensor, ridge: float, wanted: Wanted = "both") -> tuple[Tensor, Tensor]:
    """Root and inverse root; the compiled code leaves out one that is not wanted."""
    if compiling():
        return torch.ops.matroot.minimax_roots(A, ridge)
    if wanted == "both" or A.is_cuda:
        return _ops.minimax_roots(A, ridge)
    return native.roots(A.resolve_neg(), ridge, native_schedules(A.dtype), wanted == "sqrt", wanted == "invsqrt")


class _Minimax(Function):
    """(A) -> both roots, of float32 where A is half."""

    @staticmethod
    def forward(ctx, A, ridge, gradient):
        ctx.ridge, ctx.gradient, ctx.dtype = ridge, gradient, A.dtype
        ctx.set_materialize_grads(False)
        roots = _minimax(A, ridge)
        ctx.save_for_backward(*roots)
        return roots

    @staticmethod
    def backward(ctx, *cotangents):
        roots = ctx.saved_tensors
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None
        traced = compiling()
        if torch.is_grad_enabled() or not (traced or all(map(plain, used))):
            with full_precision(roots[0]):
                X = _with_ridge(_differentiable(roots, cotangents, ctx.gradient, "both"), ctx.ridge)
        elif not isinstance(ctx.gradient, Smith):
            with full_precision(roots[0]):
                X = torch.empty_like(roots[0])
                for part in cpu_eigen.chunks(*X.shape[:2]):
                    upstream = [None if G is None else G[part] for G in cotangents]
                    X[part] = _differentiable([T[part] for T in roots], upstream, ctx.gradient, "both")
                X = _with_ridge(X, ctx.ridge)
        else:
            solve = torch.ops.matroot.smith_solve if traced else _ops.smith_solve
            X = solve(roots[0], roots[1], cotangents[0], cotangents[1], ctx.ridge)
        return X if X.dtype == ctx.dtype else X.to(ctx.dtype), None, None


def _in_chunks(A: Tensor, ridge: float, plan: Plan, wanted: Wanted, otherwise: Pipeline) -> tuple[Tensor, ...]:
    refused, *found = _Eigen.apply(A, ridge, wanted) if recording(A) else _eigen(A, ridge, wanted)
    found = found[: len(inverses(wanted))]
    if refused.any():
        places = refused.nonzero()[:, 0]
        careful = otherwise(A[places], ridge, plan, wanted)
        found = [root.index_copy(0, places, right) for root, right in zip(found, careful, strict=True)]
    return tuple(found)


def _paper(A: Tensor, ridge: float, plan: Plan, wanted: Wanted) -> tuple[Tensor, ...]:
    A = A.resolve_neg()  # kernels read memory as it is
    if recording(A):
        return _Paper.apply(A, ridge, plan.method, plan.gradient, wanted)
    return _fused_paper.evaluate(A, ridge, plan.method, wanted, A.dtype)


class _Paper(Function):
    """(A) -> the wanted roots by one of the paper's methods, in float32."""

    @staticmethod
    def forward(ctx, A, ridge, method, gradient, wanted):
        ctx.ridge, ctx.gradient, ctx.wanted, ctx.dtype = ridge, gradient, wanted, A.dtype
        ctx.set_materialize_grads(False)
        roots = _fused_paper.evaluate(A, ridge, method, wanted, torch.float32)
        ctx.save_for_backward(*roots)
        return roots

    @staticmethod
    def backward(ctx, *cotangents):
        roots = ctx.saved_tensors
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None, None, None
        if torch.is_grad_enabled() or not all(plain(G) for G in used):
            with full_precision(roots[0]):
                X = _with_ridge(_differentiable(roots, cotangents, ctx.gradient, ctx.wanted), ctx.ridge)
        else:
            cotangents = tuple(None if G is None else G.resolve_neg() for G in cotangents)
            X = _fused_paper.solve(roots, cotangents, ctx.ridge, ctx.gradient, ctx.wanted, ctx.dtype)
        return X.to(ctx.dtype), None, None, None, None


def _eigen(A: Tensor, ridge: float, wanted: Wanted) -> tuple[Tensor, ...]:
    """Which matrices were refused; the wanted roots, eigenvalues and eigenvectors."""
    outputs: list[Tensor] = []
    for part in cpu_eigen.chunks(len(A), A.shape[-1]):
        values, vectors, refused = cpu_eigen.decompose(A[part], ridge)
        functions = [
            torch.rsqrt(floored(values)) if inverse else torch.sqrt(values.clamp_min(0)) for inverse in inverses(wanted)
        ]
        made = (refused, *(cpu_eigen.compose(vectors, f) for f in functions), values, vectors)
        if len(refused) == len(A):
            return made
        outputs = outputs or [torch.empty(len(A), *m.shape[1:], dtype=m.dtype) for m in made]
        for whole, m in zip(outputs, made, strict=True):
            whole[part] = m
    return tuple(outputs)


class _Eigen(Function):
    """(A) -> which matrices were refused, the wanted roots, eigenvalues and eigenvectors."""

    @staticmethod
    def forward(ctx, A, ridge, wanted):
        refused, *outputs = _eigen(A, ridge, wanted)
        ctx.ridge, ctx.wanted = ridge, wanted
        ctx.mark_non_differentiable(refused, *outputs[-2:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*outputs)
        return refused, *outputs

    @staticmethod
    def backward(ctx, _, *cotangents):
        outputs = ctx.saved_tensors
        cotangents = cotangents[: len(outputs) - 2]
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None
        with full_precision(outputs[0]):
            if torch.is_grad_enabled() or not all(concrete(G) for G in used):
                X = _differentiable(outputs, cotangents, Exact(), ctx.wanted)
            else:
                X = torch.empty(outputs[0].shape, dtype=outputs[0].dtype)
                kinds = inverses(ctx.wanted)
                for part in cpu_eigen.chunks(len(X), X.shape[-1]):
                    upstream = {kind: G[part] for kind, G in zip(kinds, cotangents, strict=True) if G is not None}
                    values, vectors = (T[part] for T in outputs[-2:])
                    X[part] = cpu_eigen.solve(floored(values), vectors, upstream.get(False), upstream.get(True))
            X = _with_ridge(X, ctx.ridge)
        return X, None, None


def _with_ridge(X: Tensor, ridge: float) -> Tensor:
    """The gradient by A of what depends on A + ridge (trace(A)/n) I, given that by the sum."""
    return X + (ridge / X.shape[-1]) * eager.trace(X) * eager.identity(X) if ridge else X


def _differentiable(outputs, cotangents, gradient: Gradient, wanted: Wanted) -> Tensor:
    """The same gradient in operations that can be differentiated or batched.

    With c a power of two near the size of the root, A/c^2 has roots S/c and c R, and solvers meet matrices
    of moderate size. Where the root is zero so is the gradient, and the identity stands in for it.
    """
    zero = eager.frobenius(outputs[0].detach()) == 0
    roots = len(inverses(wanted))
    outputs = [*(torch.where(zero, eager.identity(T), T) for T in outputs[:roots]), *outputs[roots:]]
    size = eager.frobenius(outputs[0].detach())
    size = torch.exp2(torch.round(torch.log2(size / outputs[0].shape[-1] ** 0.5)))
    c = 1 / size if wanted == "invsqrt" else size
    scaled = [c * root if inverse else root / c for root, inverse in zip(outputs, inverses(wanted), strict=False)]
    if len(outputs) > roots:
        values, vectors = outputs[roots:]
        scaled += [values / c[..., 0] ** 2, vectors]
    upstream = [
        None if G is None else eager.hermitian(G / c if inverse else c * G)
        for G, inverse in zip(cotangents, inverses(wanted), strict=True)
    ]
    return torch.where(zero, 0, pull_back(scaled, upstream, c * c, gradient, wanted) / (c * c))
