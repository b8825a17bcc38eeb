"""The Lyapunov equation as a differentiable function.

On Hermitian matrices let L_B[X] = B X + X B. From B dX + dX B = dC - dB X - X dB, the derivative of
X = L_B^-1[C] for upstream X' and W = L_B^-1[X'] is

    C' = W,   B' = -(W X + X W),

again a Lyapunov solve. For X = L_R^-1[-N G N] with N = R^2, the right-hand side C = -N G N and
dN = dR R + R dR add

    G' = -N W N,   R' = -(W X + X W) - (M R + R M),   M = G N W + W N G.
"""

from torch import Tensor
from torch.autograd import Function

from .._tracing import autocast_disabled, compiling, inside_jvp, needs_grad
from ..backends import torch_ops
from ..gradients._base import ImplicitGradient


def lyapunov(B: Tensor, C: Tensor, gradient: ImplicitGradient, known: tuple[Tensor, ...] = ()) -> Tensor:
    """The Hermitian X with B X + X B = C, differentiable in B and C to any order."""
    if compiling() or not needs_grad(B, C):
        return gradient.solve(B, C, known)
    return _Lyapunov.apply(B, C, gradient, *known)


def inverse_lyapunov(R: Tensor, G: Tensor, gradient: ImplicitGradient, known: tuple[Tensor, ...] = ()) -> Tensor:
    """The Hermitian X with R X + X R = -R^2 G R^2, differentiable in R and G to any order."""
    if compiling() or not needs_grad(R, G):
        return gradient.solve_inverse(R, G, known)
    return _InverseLyapunov.apply(R, G, gradient, *known)


class _Lyapunov(Function):
    """X = L_B^-1[C] on Hermitian matrices; what is known of B adds no dependence."""

    generate_vmap_rule = True

    @staticmethod
    def forward(B, C, gradient, *known):
        return gradient.solve(B, C, known)

    @staticmethod
    def setup_context(ctx, inputs, output):
        B, C, ctx.gradient, *known = inputs
        ctx.save_for_backward(B, C, output, *known)
        ctx.save_for_forward(B, C, output, *known)

    @staticmethod
    def backward(ctx, upstream):
        B, _, X, *known = ctx.saved_tensors
        with autocast_disabled(B):
            W = lyapunov(B, torch_ops.hermitian(upstream), ctx.gradient, tuple(known))
            return -_anticommutator(W, X), W, None, *(None for _ in known)

    @staticmethod
    def jvp(ctx, dB, dC, *_):
        with autocast_disabled(dB), inside_jvp(*ctx.saved_tensors) as (B, _, X, *known):
            right = torch_ops.hermitian(dC) - _anticommutator(torch_ops.hermitian(dB), X)
            return lyapunov(B, right, ctx.gradient, tuple(known))


class _InverseLyapunov(Function):
    """X = L_R^-1[-R^2 G R^2], for rules that need not form the right-hand side."""

    generate_vmap_rule = True

    @staticmethod
    def forward(R, G, gradient, *known):
        return gradient.solve_inverse(R, G, known)

    setup_context = staticmethod(_Lyapunov.setup_context)

    @staticmethod
    def backward(ctx, upstream):
        R, G, X, *known = ctx.saved_tensors
        with autocast_disabled(R):
            W = lyapunov(R, torch_ops.hermitian(upstream), ctx.gradient, tuple(known))
            N = torch_ops.product(R, R)
            NW = torch_ops.product(N, W)
            M = 2 * torch_ops.hermitian(torch_ops.product(G, NW))
            dR = -_anticommutator(W, X) - _anticommutator(M, R)
            return dR, -torch_ops.hermitian(torch_ops.product(NW, N)), None, *(None for _ in known)

    @staticmethod
    def jvp(ctx, dR, dG, *_):
        with autocast_disabled(dR), inside_jvp(*ctx.saved_tensors) as (R, G, X, *known):
            dR, N = torch_ops.hermitian(dR), torch_ops.product(R, R)
            dN = _anticommutator(dR, R)
            dNGN = torch_ops.product(torch_ops.product(dN, G), N)
            NdGN = torch_ops.sandwich(N, torch_ops.hermitian(dG))
            right = -_anticommutator(dR, X) - 2 * torch_ops.hermitian(dNGN) - NdGN
            return lyapunov(R, right, ctx.gradient, tuple(known))


def _anticommutator(a: Tensor, b: Tensor) -> Tensor:
    """a b + b a for Hermitian a and b."""
    return 2 * torch_ops.hermitian(torch_ops.product(a, b))
