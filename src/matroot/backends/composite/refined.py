"""Float64 roots and gradients from float32 ones, by iterative refinement."""

from functools import lru_cache
from threading import get_ident

import torch
from torch import Tensor

from ...gradients import Gradient, Smith
from ...methods import Method, Minimax
from ...methods._base import Output, select
from .. import torch_ops
from .._base import CallContext, Cotangents, Evaluation, Tensors, by_kind
from . import refinement
from ._base import CompositeBackend
from .refinement import Narrow, largest, narrowed, nonzero


class Refined(CompositeBackend):
    """``Minimax`` with ``Smith`` in float64.

    Reads on the host whether another round is needed. Matrices that float32 knows too little about, from condition
    1e7 or so on, are deferred, and so are those without a root. On the CPU it is slower than compiled float64.
    """

    name = "refined"

    def inner_context(self, context: CallContext) -> CallContext | str:
        if context.dtype != torch.float64:
            return "it computes in float64"
        if context.captured:
            return "a CUDA graph cannot ask whether matrices converged"
        return context._replace(dtype=torch.float32)

    def prepare(self, A: Tensor, ridge: float, method: Method, output: Output, differentiable: bool) -> None:
        narrow = A.new_empty(A.shape, dtype=torch.float32)
        # Rounds of the root solve its Lyapunov equation, and those of every gradient the same one.
        self.inner_for(narrow).prepare(narrow, 0.0, method, "sqrt", True)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        if A.is_cuda:
            prepare_for_graphs(A.device, get_ident(), False)
        matrix, root_scale = _scaled(A, ridge)
        narrow = matrix.float()
        inner = self.inner_for(narrow)
        S, R, exact = refinement.root(matrix, Narrow(inner, *inner.roots(narrow, 0.0, method, "both").roots))
        R, near = refinement.inverse(S, R, output != "sqrt")
        usable = exact & near
        S, R = S * root_scale, R / root_scale
        if usable.all():
            return Evaluation(select(output, S, R))
        # Deferred matrices take part in the backward pass, with gradients of zero: their roots must be finite.
        eye, usable = torch_ops.identity(S), usable.to(S.device)
        S, R = (torch.where(usable[:, None, None], T, eye) for T in (S, R))
        return Evaluation(select(output, S, R), deferred=~usable)

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        if saved[0].is_cuda:
            prepare_for_graphs(saved[0].device, get_ident(), True)
        # With c a power of two near the size of the root, A/c^2 has roots S/c and c R, which float32 can hold.
        c = _power_of_two_near(saved[0])
        S, R = saved[0] / c, narrowed(saved[1], 1 / c)
        GS, GR = by_kind(cotangents, output)
        G = None if GS is None else torch_ops.hermitian(GS)
        if GR is not None:
            of_R = torch_ops.hermitian(saved[1] @ GR @ saved[1])
            G = -of_R if G is None else G - of_R
        assert G is not None  # no call is without cotangents
        unit = _power_of_two_near(G)
        narrow = S.float()
        G = G / unit
        X, inexact = refinement.solution(S, G, Narrow(self.inner_for(narrow), narrow, R))
        if inexact is not None:
            index = inexact.nonzero()[:, 0].to(X.device)
            X[index] = Smith().solve(S[index], G[index], (c[index] * saved[1][index],))
        return torch_ops.add_ridge_term(X * (unit / c), ridge)


@lru_cache(maxsize=64)
def prepare_for_graphs(device: torch.device, thread: int, backward: bool) -> None:
    """Evaluate ``Minimax`` by ordinary operations once, or solve the equation of its gradient.

    A CUDA graph, for which values cannot be read, records those. It needs what it cannot make: their constants on the
    device, and handles of the libraries that they call for one matrix and for several, of which every thread has its
    own. The call that came before it, to warm up, came here, and its backward pass in the thread of backward passes.
    """
    with torch.no_grad():
        for count in (1, 2):
            A = torch.eye(2, dtype=torch.float64, device=device).repeat(count, 1, 1)
            if backward:
                Smith().solve(A, A, (A,))
            else:
                Minimax().evaluate(A, "both")


def _scaled(A: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The symmetric part with the ridge, largest entry near one, and the square root of what it was divided by."""
    root_scale = torch_ops.root_of_scale(largest(A))
    half = A * (0.5 / root_scale / root_scale)
    matrix = half + half.mT
    if ridge:
        matrix = torch_ops.add_ridge_term(matrix, ridge) / (1 + ridge)
        root_scale = root_scale * (1 + ridge) ** 0.5
    return matrix, root_scale


def _power_of_two_near(matrix: Tensor) -> Tensor:
    """At most the largest entry, and above half of it, (k, 1, 1); not zero for a matrix of zeros."""
    return torch.exp2(torch.floor(torch.log2(nonzero(largest(matrix)))))
