"""Kernels on NVIDIA GPUs."""

import torch
from torch import Tensor

from ..._counting import report_uncounted
from ...gradients import Gradient, Lyapunov, Smith
from ...methods import Method, Minimax, NewtonSchulz, Pade, Taylor
from ...methods._base import Output
from ...methods.minimax import kernel_schedules
from .._base import CallContext, Cotangents, Evaluation, FusedBackend, Tensors, by_kind, readable, unsupported_pair
from . import minimax
from .paper import methods as paper


class Triton(FusedBackend):
    """``Minimax`` with ``Smith``; ``Taylor``, ``Pade`` and ``NewtonSchulz`` with ``Lyapunov``. Float32 and half."""

    name = "triton"
    device_type = "cuda"

    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        largest = paper.LARGEST
        if method == Minimax() and gradient == Smith():
            largest = minimax.LARGEST
        elif not isinstance(gradient, Lyapunov) or not isinstance(method, Taylor | Pade | NewtonSchulz):
            return f"no kernel for {unsupported_pair(method, gradient)}"
        elif context.traced:
            return "inside torch.compile only 'minimax' with 'smith'"
        if context.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return "kernels are for float32, float16 and bfloat16"
        if context.n > largest:
            return f"matrices of size {context.n} are larger than {largest}"
        return minimax.unavailable_reason(context.device)

    def prepare(self, A: Tensor, ridge: float, method: Method, output: Output, differentiable: bool) -> None:
        if isinstance(method, Minimax):
            cotangents = (output != "invsqrt", output != "sqrt") if differentiable else None
            minimax.prepare(A.resolve_neg(), ridge, kernel_schedules, cotangents)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        A = A.resolve_neg()  # kernels read memory as it is
        report_uncounted()
        if isinstance(method, Minimax):
            S, R = minimax.roots(A, ridge, kernel_schedules)
            return Evaluation((S, R) if output == "both" else (S,) if output == "sqrt" else (R,))
        return Evaluation(paper.evaluate(A, ridge, method, output))

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        report_uncounted()
        if isinstance(gradient, Lyapunov):
            saved = tuple([readable(T, torch.float32) for T in saved])
            cotangents = tuple([None if G is None else readable(G, torch.float32) for G in cotangents])
            return paper.solve(saved, cotangents, ridge, gradient, output)
        (S, R), (GS, GR) = saved, by_kind(cotangents, output)
        return minimax.solve(S, R, GS, GR, ridge)
