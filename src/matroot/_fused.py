"""The pipeline as one differentiable step: in chunks on the CPU, in one launch each way on a GPU.

What ``_inputs``, a method and ``_rule`` do one after another is done here in memory that stays in cache or on chip.
On the CPU, matrices that need the care of ``_inputs`` are set aside for it, one by one: results do not depend on
the company a matrix is in.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import Function

from ._rule import pull_back
from ._tracing import concrete, full_precision, plain, recording
from .backends import cpu_eigen, cpu_minimax, cpu_smith, eager, triton_roots
from .backends.scratch import chunks
from .gradients import Exact, Gradient, Krylov, Smith
from .gradients._base import ImplicitGradient
from .methods import Eigen, Method, Minimax
from .methods._base import Wanted, inverses
from .methods.eigen import floored
from .methods.minimax import kernel_schedules, ladder

Pipeline = Callable[[Tensor], tuple[Tensor, ...]]


def applies(A: Tensor, method: Method, gradient: Gradient) -> bool:
    """Whether this file knows how to do it."""
    if A.device.type == "cuda":
        return (
            method == Minimax()
            and gradient == Smith()
            and plain(A)
            and A.dtype in (torch.float32, torch.bfloat16, torch.float16)
            and A.numel() > 0
            and A.shape[-1] <= triton_roots.LARGEST
            and torch.autograd.forward_ad._current_level < 0
            and triton_roots.available(A.device)
        )
    return (
        ((method == Minimax() and isinstance(gradient, Krylov | Smith)) or (method == Eigen() and gradient == Exact()))
        and concrete(A)
        and A.dtype in (torch.float32, torch.float64)
        and A.numel() > 0
        and torch.autograd.forward_ad._current_level < 0
        and not eager.reduced_precision(A)
    )


def fused_roots(
    A: Tensor, ridge: float, method: Method, gradient: Gradient, wanted: Wanted, otherwise: Pipeline
) -> tuple[Tensor, ...]:
    """The wanted roots of the caller's matrices; ``otherwise`` does those that need more care."""
    n = A.shape[-1]
    flat = A.reshape(-1, n, n)
    if A.is_cuda:
        roots = _Launched.apply(flat, ridge) if recording(A) else triton_roots.roots(flat, ridge, kernel_schedules())
        return tuple(roots[inverse].to(A.dtype).view(A.shape) for inverse in inverses(wanted))
    forward = _eigen if isinstance(method, Eigen) else _minimax
    if recording(A):
        refused, *outputs = _Fused.apply(flat, ridge, forward, gradient, wanted)
    else:
        refused, outputs = forward(flat, ridge, wanted, False)
    made = _made(gradient, wanted)
    found = [
        root
        for root, inverse in zip(outputs, inverses(made), strict=False)
        if root is not None and inverse in inverses(wanted)
    ]
    if refused.any():
        places = refused.nonzero()[:, 0]
        careful = otherwise(flat[places])
        found = [root.index_copy(0, places, right) for root, right in zip(found, careful, strict=True)]
    return tuple(root.view(A.shape) for root in found)


def _made(gradient: Gradient, wanted: Wanted) -> Wanted:
    """Which roots the forward pass makes: the way back may need both."""
    return "both" if isinstance(gradient, ImplicitGradient) and gradient.needs_both else wanted


def _minimax(A: Tensor, ridge: float, wanted: Wanted, keep: bool) -> tuple[Tensor, list[Tensor | None]]:
    """Which matrices were refused; root and inverse root, None for one neither wanted nor to be kept."""
    steps = ladder(A.dtype)
    S = torch.empty(A.shape, dtype=A.dtype) if keep or wanted != "invsqrt" else None
    R = torch.empty(A.shape, dtype=A.dtype) if keep or wanted != "sqrt" else None
    refused = torch.empty(len(A), dtype=torch.bool)
    for part in chunks(len(A), A.shape[-1]):
        some = A[part]
        root, inverse = (torch.empty(some.shape, dtype=A.dtype) if T is None else T[part] for T in (S, R))
        refused[part] = cpu_minimax.roots(some, ridge, steps, root, inverse)
    return refused, [S, R]


def _eigen(A: Tensor, ridge: float, wanted: Wanted, keep: bool) -> tuple[Tensor, list[Tensor]]:
    """Which matrices were refused; the wanted roots, eigenvalues and eigenvectors."""
    outputs: list[Tensor] = []
    for part in chunks(len(A), A.shape[-1]):
        values, vectors, refused = cpu_eigen.decompose(A[part], ridge)
        functions = [
            torch.rsqrt(floored(values)) if inverse else torch.sqrt(values.clamp_min(0)) for inverse in inverses(wanted)
        ]
        made = [refused, *(cpu_eigen.compose(vectors, f) for f in functions), values, vectors]
        if len(refused) == len(A):
            return made[0], made[1:]
        outputs = outputs or [torch.empty(len(A), *m.shape[1:], dtype=m.dtype) for m in made]
        for whole, m in zip(outputs, made, strict=True):
            whole[part] = m
    return outputs[0], outputs[1:]


class _Fused(Function):
    """(A) -> which matrices were refused, roots, whatever else the way back needs."""

    @staticmethod
    def forward(ctx, A, ridge, forward, gradient, wanted):
        refused, outputs = forward(A, ridge, wanted, True)
        ctx.ridge, ctx.gradient = ridge, gradient
        ctx.wanted = _made(gradient, wanted)
        ctx.mark_non_differentiable(refused, *outputs[len(inverses(ctx.wanted)) :])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*outputs)
        return refused, *outputs

    @staticmethod
    def backward(ctx, _, *cotangents):
        outputs, gradient, wanted = ctx.saved_tensors, ctx.gradient, ctx.wanted
        cotangents = cotangents[: len(inverses(wanted))]
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None, None, None, None
        with full_precision(outputs[0]):
            if torch.is_grad_enabled() or not all(concrete(G) for G in used):
                X = _differentiable(outputs, cotangents, gradient, wanted)
            else:
                X = torch.empty(outputs[0].shape, dtype=outputs[0].dtype)
                for part in chunks(len(X), X.shape[-1]):
                    some = [T[part] for T in outputs]
                    upstream = [None if G is None else G[part] for G in cotangents]
                    _solve(some, upstream, gradient, wanted, X[part])
            X = _with_ridge(X, ctx.ridge)
        return X, None, None, None, None


class _Launched(Function):
    """(A) -> both roots in float32, one launch, and one on the way back."""

    @staticmethod
    def forward(ctx, A, ridge):
        ctx.ridge, ctx.dtype = ridge, A.dtype
        ctx.set_materialize_grads(False)
        roots = triton_roots.roots(A, ridge, kernel_schedules())
        ctx.save_for_backward(*roots)
        return roots

    @staticmethod
    def backward(ctx, *cotangents):
        roots = ctx.saved_tensors
        used = [G for G in cotangents if G is not None]
        if not used:
            return None, None
        with full_precision(roots[0]):
            if torch.is_grad_enabled() or not all(plain(G) for G in used):
                X = _with_ridge(_differentiable(roots, cotangents, Smith(), "both"), ctx.ridge)
            else:
                X = triton_roots.solve(roots[0], roots[1], cotangents[0], cotangents[1], ctx.ridge)
        return X.to(ctx.dtype), None


def _with_ridge(X: Tensor, ridge: float) -> Tensor:
    """The gradient by A of what depends on A + ridge (trace(A)/n) I, given that by the sum."""
    return X + (ridge / X.shape[-1]) * eager.trace(X) * eager.identity(X) if ridge else X


def _solve(outputs: list[Tensor], cotangents: list[Tensor | None], gradient: Gradient, wanted: Wanted, out: Tensor):
    """Write the gradient of one chunk to ``out``."""
    if isinstance(gradient, Exact):
        *_, values, vectors = outputs
        by_kind = dict(zip(inverses(wanted), cotangents, strict=True))
        out.copy_(cpu_eigen.solve(floored(values), vectors, by_kind.get(False), by_kind.get(True)))
    elif isinstance(gradient, Smith):
        cpu_smith.solve(outputs[0], outputs[1], cotangents[0], cotangents[1], out)
    else:
        symmetric = [None if G is None else eager.hermitian(G) for G in cotangents]
        out.copy_(pull_back(outputs, symmetric, torch.ones(()), gradient, wanted))


def _differentiable(outputs, cotangents, gradient: Gradient, wanted: Wanted) -> Tensor:
    """The same gradient in operations that can be differentiated or batched.

    With c a power of two near the size of the root, A/c^2 has roots S/c and c R, and solvers meet matrices
    of moderate size.
    """
    size = eager.frobenius(outputs[0].detach())
    size = torch.exp2(torch.round(torch.log2(size / outputs[0].shape[-1] ** 0.5)))
    c = 1 / size if wanted == "invsqrt" else size
    scaled = [c * root if inverse else root / c for root, inverse in zip(outputs, inverses(wanted), strict=False)]
    if len(outputs) > len(scaled):
        values, vectors = outputs[len(scaled) :]
        scaled += [values / c[..., 0] ** 2, vectors]
    upstream = [
        None if G is None else eager.hermitian(G / c if inverse else c * G)
        for G, inverse in zip(cotangents, inverses(wanted), strict=True)
    ]
    return pull_back(scaled, upstream, c * c, gradient, wanted) / (c * c)
