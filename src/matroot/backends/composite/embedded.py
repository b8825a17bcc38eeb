"""Complex matrices as real ones of twice the size.

M -> [[Re M, -Im M], [Im M, Re M]] keeps sums, products and adjoints, and takes the trace over n for the trace over 2n:
roots, solutions of Lyapunov equations and the ridge's term of the real matrices are those of the complex ones.
"""

import torch
from torch import Tensor

from ...gradients import Gradient
from ...methods import Method
from ...methods._base import Output
from .._base import CallContext, Cotangents, Evaluation, Tensors
from ._base import CompositeBackend

_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


class Embedded(CompositeBackend):
    """``Minimax`` with ``Smith`` for complex matrices."""

    name = "embedded"

    def inner_context(self, context: CallContext) -> CallContext | str:
        if context.dtype not in _REAL:
            return "it is for complex matrices"
        *batch, n, _ = context.shape
        return context._replace(dtype=_REAL[context.dtype], shape=torch.Size((*batch, 2 * n, 2 * n)))

    def prepare(self, A: Tensor, ridge: float, method: Method, output: Output, differentiable: bool) -> None:
        n = A.shape[-1]
        real = A.new_empty(len(A), 2 * n, 2 * n, dtype=_REAL[A.dtype])
        self.inner_for(real).prepare(real, ridge, method, output, differentiable)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        real = _embed(A)
        found = self.inner_for(real).roots(real, ridge, method, output)
        return found._replace(roots=tuple([_complex(root) for root in found.roots]))

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        real = tuple([_embed(root) for root in saved])
        upstream = tuple([None if G is None else _embed(G) for G in cotangents])
        return _complex(self.inner_for(real[0]).solve(real, upstream, ridge, gradient, output))


def _embed(M: Tensor) -> Tensor:
    """The real (k, 2n, 2n) of complex (k, n, n)."""
    n = M.shape[-1]
    blocks = torch.empty(len(M), 2, n, 2, n, dtype=_REAL[M.dtype], device=M.device)
    blocks[:, 0, :, 0] = blocks[:, 1, :, 1] = M.real
    blocks[:, 1, :, 0] = M.imag
    blocks[:, 0, :, 1] = -M.imag
    return blocks.view(len(M), 2 * n, 2 * n)


def _complex(real: Tensor) -> Tensor:
    """The complex (k, n, n) of real (k, 2n, 2n): the mean of both copies of each part."""
    blocks = real.unflatten(-1, (2, -1)).unflatten(-3, (2, -1))
    return torch.complex(
        0.5 * (blocks[:, 0, :, 0] + blocks[:, 1, :, 1]), 0.5 * (blocks[:, 1, :, 0] - blocks[:, 0, :, 1])
    )
