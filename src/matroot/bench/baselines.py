"""What people use today, written plainly: the baselines and references of every benchmark."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..coefficients import pade


def exact_root(A: Tensor) -> Tensor:
    """The root in float64; eigenvalues that rounding makes negative are zeros."""
    values, U = torch.linalg.eigh(A.double())
    return (U * values.clamp_min(0).sqrt()[..., None, :]) @ U.mT


class EighRoot(Function):
    """U f(lambda) U^H by ``torch.linalg.eigh`` and the exact gradient, for symmetric (Hermitian) G.

    With s = sqrt(lambda) the gradient is U (M o U^H G U) U^H, where M_ij is 1/(s_i + s_j) for the root
    and -1/(s_i s_j (s_i + s_j)) for the inverse root.
    """

    @staticmethod
    def forward(ctx: Any, inverse: bool, A: Tensor) -> Tensor:
        values, U = torch.linalg.eigh(A)
        s = values.sqrt()
        ctx.save_for_backward(s, U)
        ctx.inverse = inverse
        return (U * (1 / s if inverse else s)[..., None, :]) @ U.mH

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        s, U = ctx.saved_tensors
        i, j = s[..., :, None], s[..., None, :]
        M = -1 / (i * j * (i + j)) if ctx.inverse else 1 / (i + j)
        return None, U @ (M * (U.mH @ grads[0] @ U)) @ U.mH


class EighRoots(Function):
    """Root and inverse root as in ``EighRoot``, from one decomposition and with one backward pass."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Tensor, Tensor]:
        values, U = torch.linalg.eigh(A)
        s = values.sqrt()
        ctx.save_for_backward(s, U)
        return (U * s[..., None, :]) @ U.mT, (U / s[..., None, :]) @ U.mT

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        s, U = ctx.saved_tensors
        i, j = s[..., :, None], s[..., None, :]
        root, inverse = (U.mT @ G @ U for G in grads)
        return U @ ((root - inverse / (i * j)) / (i + j)) @ U.mT


class PaperRoot(Function):
    """MPA-Lya for the root, written as the paper describes it: Pade [5,5] by successive powers and one solve, then
    eight iterations of six products."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        norm = torch.linalg.matrix_norm(A, keepdim=True)
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        Z = eye - A / norm
        numerator, denominator = pade(5)
        P, Q, power = eye, eye, eye
        for p, q in zip(numerator[1:], denominator[1:], strict=True):
            power = power @ Z
            P, Q = P + float(p) * power, Q + float(q) * power
        root = torch.linalg.solve(Q, P)
        ctx.save_for_backward(root, norm)
        return root * norm.sqrt()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        B, norm = ctx.saved_tensors
        eye = 3 * torch.eye(B.shape[-1], dtype=B.dtype, device=B.device)
        C = grads[0] / norm.sqrt()
        for _ in range(8):
            square = B @ B
            rest = eye - square
            C = 0.5 * (C @ rest - square @ C + B @ C @ B)
            B = 0.5 * B @ rest
        return 0.5 * C
