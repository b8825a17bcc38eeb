"""The pipeline as one differentiable step: compiled code or chunks on the CPU, kernels on a GPU.

What ``_inputs``, a method and ``_rule`` do one after another is done here in memory that stays in cache or on chip,
and no matrix affects another.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import Function

from .._plan import Plan
from .._tracing import autocast_disabled, compiling, is_host_readable, is_plain_eager, needs_grad
from ..backends import torch_ops
from ..backends.cpu import compiled, lapack
from ..backends.triton.paper import methods as _fused_paper
from ..gradients import Exact, Gradient, Smith
from ..methods import Minimax
from ..methods._base import Output, is_inverse
from ..methods.eigen import clamp_eigenvalues
from ..methods.minimax import compiled_schedules
from . import ops as _ops
from .roots import vjp

Pipeline = Callable[[Tensor, float, Plan, Output], tuple[Tensor, ...]]


def fused_roots(A: Tensor, ridge: float, plan: Plan, output: Output, otherwise: Pipeline) -> tuple[Tensor, ...]:
    """The output roots of the caller's matrices; ``otherwise`` does those that need more care."""
    flat = A if A.ndim == 3 else A.reshape(-1, *A.shape[-2:])
    if plan.backend == "lapack":
        with autocast_disabled(A):
            found = _in_chunks(flat, ridge, plan, output, otherwise)
    elif not isinstance(plan.method, Minimax):
        found = _paper(flat, float(ridge), plan, output)
    else:
        ridge = float(ridge)
        both = _Minimax.apply(flat, ridge, plan.gradient) if needs_grad(A) else _minimax(flat, ridge, output)
        found = tuple([both[inverse] for inverse in is_inverse(output)])
    if A.ndim == 3 and found[0].dtype == A.dtype:
        return found
    return tuple(root.to(A.dtype).view(A.shape) for root in found)


def _minimax(A: Tensor, ridge: float, output: Output = "both") -> tuple[Tensor, Tensor]:
    """Root and inverse root; the compiled code leaves out one that is not output."""
    if compiling():
        return torch.ops.matroot.minimax_roots(A, ridge)
    if output == "both" or A.is_cuda:
        return _ops.minimax_roots(A, ridge)
    return compiled.roots(A.resolve_neg(), ridge, compiled_schedules(A.dtype), output == "sqrt", output == "invsqrt")


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
        if torch.is_grad_enabled() or not (traced or all(map(is_plain_eager, used))):
            with autocast_disabled(roots[0]):
                X = _with_ridge(_differentiable(roots, cotangents, ctx.gradient, "both"), ctx.ridge)
        elif not isinstance(ctx.gradient, Smith):
            with autocast_disabled(roots[0]):
                X = torch.empty_like(roots[0])
                for part in lapack.chunks(*X.shape[:2]):
                    upstream = [None if G is None else G[part] for G in cotangents]
                    X[part] = _differentiable([T[part] for T in roots], upstream, ctx.gradient, "both")
                X = _with_ridge(X, ctx.ridge)
        else:
            solve = torch.ops.matroot.smith_solve if traced else _ops.smith_solve
            X = solve(roots[0], roots[1], cotangents[0], cotangents[1], ctx.ridge)
        return X if X.dtype == ctx.dtype else X.to(ctx.dtype), None, None


def _in_chunks(A: Tensor, ridge: float, plan: Plan, output: Output, otherwise: Pipeline) -> tuple[Tensor, ...]:
    refused, *found = _Eigen.apply(A, ridge, output) if needs_grad(A) else _eigen(A, ridge, output)
    found = found[: len(is_inverse(output))]
    if refused.any():
        places = refused.nonzero()[:, 0]
        careful = otherwise(A[places], ridge, plan, output)
        found = [root.index_copy(0, places, right) for root, right in zip(found, careful, strict=True)]
    return tuple(found)


def _paper(A: Tensor, ridge: float, plan: Plan, output: Output) -> tuple[Tensor, ...]:
    A = A.resolve_neg()  # kernels read memory as it is
    if needs_grad(A):
        return _Paper.apply(A, ridge, plan.method, plan.gradient, output)
    return _fused_paper.evaluate(A, ridge, plan.method, output, A.dtype)


class _Paper(Function):
    """(A) -> the output roots by one of the paper's methods, in float32."""

    @staticmethod
    def forward(ctx, A, ridge, method, gradient, output):
        ctx.ridge, ctx.gradient, ctx.output, ctx.dtype = ridge, gradient, output, A.dtype
        ctx.set_materialize_grads(False)
        roots = _fused_paper.evaluate(A, ridge, method, output, torch.float32)
        ctx.save_for_backward(*roots)
        return roots

    @staticmethod
    def backward(ctx, *cotangents):
        roots = ctx.saved_tensors
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None, None, None
        if torch.is_grad_enabled() or not all(is_plain_eager(G) for G in used):
            with autocast_disabled(roots[0]):
                X = _with_ridge(_differentiable(roots, cotangents, ctx.gradient, ctx.output), ctx.ridge)
        else:
            cotangents = tuple(None if G is None else G.resolve_neg() for G in cotangents)
            X = _fused_paper.solve(roots, cotangents, ctx.ridge, ctx.gradient, ctx.output, ctx.dtype)
        return X.to(ctx.dtype), None, None, None, None


def _eigen(A: Tensor, ridge: float, output: Output) -> tuple[Tensor, ...]:
    """Which matrices were refused; the output roots, eigenvalues and eigenvectors."""
    outputs: list[Tensor] = []
    for part in lapack.chunks(len(A), A.shape[-1]):
        values, vectors, refused = lapack.decompose(A[part], ridge)
        functions = [
            torch.rsqrt(clamp_eigenvalues(values)) if inverse else torch.sqrt(values.clamp_min(0))
            for inverse in is_inverse(output)
        ]
        made = (refused, *(lapack.compose(vectors, f) for f in functions), values, vectors)
        if len(refused) == len(A):
            return made
        outputs = outputs or [torch.empty(len(A), *m.shape[1:], dtype=m.dtype) for m in made]
        for whole, m in zip(outputs, made, strict=True):
            whole[part] = m
    return tuple(outputs)


class _Eigen(Function):
    """(A) -> which matrices were refused, the output roots, eigenvalues and eigenvectors."""

    @staticmethod
    def forward(ctx, A, ridge, output):
        refused, *outputs = _eigen(A, ridge, output)
        ctx.ridge, ctx.output = ridge, output
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
        with autocast_disabled(outputs[0]):
            if torch.is_grad_enabled() or not all(is_host_readable(G) for G in used):
                X = _differentiable(outputs, cotangents, Exact(), ctx.output)
            else:
                X = torch.empty(outputs[0].shape, dtype=outputs[0].dtype)
                kinds = is_inverse(ctx.output)
                for part in lapack.chunks(len(X), X.shape[-1]):
                    upstream = {kind: G[part] for kind, G in zip(kinds, cotangents, strict=True) if G is not None}
                    values, vectors = (T[part] for T in outputs[-2:])
                    X[part] = lapack.solve(clamp_eigenvalues(values), vectors, upstream.get(False), upstream.get(True))
            X = _with_ridge(X, ctx.ridge)
        return X, None, None


def _with_ridge(X: Tensor, ridge: float) -> Tensor:
    """The gradient by A of what depends on A + ridge (trace(A)/n) I, given that by the sum."""
    return X + (ridge / X.shape[-1]) * torch_ops.trace(X) * torch_ops.identity(X) if ridge else X


def _differentiable(outputs, cotangents, gradient: Gradient, output: Output) -> Tensor:
    """The same gradient in operations that can be differentiated or batched.

    With c a power of two near the size of the root, A/c^2 has roots S/c and c R, and solvers meet matrices
    of moderate size. Where the root is zero so is the gradient, and the identity stands in for it.
    """
    zero = torch_ops.frobenius(outputs[0].detach()) == 0
    roots = len(is_inverse(output))
    outputs = [*(torch.where(zero, torch_ops.identity(T), T) for T in outputs[:roots]), *outputs[roots:]]
    size = torch_ops.frobenius(outputs[0].detach())
    size = torch.exp2(torch.round(torch.log2(size / outputs[0].shape[-1] ** 0.5)))
    c = 1 / size if output == "invsqrt" else size
    scaled = [c * root if inverse else root / c for root, inverse in zip(outputs, is_inverse(output), strict=False)]
    if len(outputs) > roots:
        values, vectors = outputs[roots:]
        scaled += [values / c[..., 0] ** 2, vectors]
    upstream = [
        None if G is None else torch_ops.hermitian(G / c if inverse else c * G)
        for G, inverse in zip(cotangents, is_inverse(output), strict=True)
    ]
    return torch.where(zero, 0, vjp(scaled, upstream, c * c, gradient, output) / (c * c))
