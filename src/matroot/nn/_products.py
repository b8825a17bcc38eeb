"""Symmetric products of features, whose gradients take fewer products than autograd's: those are symmetric too.

What autograd cannot see through, or has to differentiate in another way, is left to it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .._tracing import autocast_disabled, compiling, forward_mode, is_plain_eager, needs_grad, transforming


def scatter(X: Tensor) -> Tensor:
    """X X^T, for X (*, C, N)."""
    return _Scatter.apply(X) if _is_ours(X) else X @ X.mT


def half_scatter(X: Tensor) -> Tensor:
    """X X^T in float32, for X (G, C, M) in half precision on CUDA, whose products nothing rounds."""
    if transforming() or (not compiling() and forward_mode()):
        return scatter(X.float())
    return _HalfScatter.apply(X)


def congruence(Y: Tensor, R: Tensor) -> Tensor:
    """Y R Y^T, for Y (*, C, N) and symmetric R (*, N, N)."""
    return _Congruence.apply(Y, R) if _is_ours(Y, R) else Y @ R @ Y.mT


def _is_ours(*tensors: Tensor) -> bool:
    return needs_grad(*tensors) and all(map(is_plain_eager, tensors)) and not forward_mode()


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, X):
        ctx.save_for_backward(X)
        return X @ X.mT

    @staticmethod
    def backward(ctx: Any, G):
        (X,) = ctx.saved_tensors
        with autocast_disabled(X):
            return (G + G.mT) @ X


class _HalfScatter(Function):
    @staticmethod
    def forward(ctx: Any, X):
        ctx.save_for_backward(X)
        return torch.bmm(X, X.mT, out_dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, G):
        (X,) = ctx.saved_tensors
        H = G + G.mT
        with autocast_disabled(X):
            if X.dtype != torch.float16:
                return H.to(X.dtype) @ X
            # Float16 has a short range: the gradient of a mean over many positions would be lost.
            with torch.no_grad():
                bound = H.shape[-1] * H.abs().amax((-2, -1), keepdim=True)
                bound = torch.where(bound > 0, bound, 1)
            return ((H / bound).to(X.dtype) @ X).mul_(bound)


class _Congruence(Function):
    @staticmethod
    def forward(ctx: Any, Y, R):
        ctx.save_for_backward(Y, R)
        return Y @ R @ Y.mT

    @staticmethod
    def backward(ctx: Any, G):
        """With H = G + G^T: H Y R for Y, and the symmetric part Y^T H Y/2 for R."""
        Y, R = ctx.saved_tensors
        with autocast_disabled(Y):
            HY = (G + G.mT) @ Y
            return HY @ R, 0.5 * (Y.mT @ HY)
