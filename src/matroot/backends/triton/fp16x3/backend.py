"""Kernels on NVIDIA GPUs in which every product is three float16 ones, at every condition number."""

import torch
from torch import Tensor

from ...._counting import report_uncounted
from ....gradients import Gradient, Smith
from ....methods import Method, Minimax
from ....methods._base import Output
from ..._base import CallContext, Cotangents, Evaluation, FusedBackend, Tensors, by_kind, readable, unsupported_pair
from ...torch_ops import rounding_tolerance
from ..minimax import unavailable_reason
from ..on_chip import launch as on_chip

LARGEST = 16384
"""Offsets inside a matrix have 32 bits."""


class Fp16x3(FusedBackend):
    """``Minimax`` with ``Smith`` in float32 and half types; by name only."""

    name = "fp16x3"
    device_type = "cuda"
    by_name_only = True

    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        if method != Minimax() or gradient != Smith():
            return f"no kernel for {unsupported_pair(method, gradient)}"
        if context.traced:
            return "not inside torch.compile"
        if context.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return "kernels are for float32, float16 and bfloat16"
        if context.n > LARGEST:
            return f"matrices of size {context.n} are larger than {LARGEST}"
        return unavailable_reason(context.device)

    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        report_uncounted()
        A = A.resolve_neg()  # kernels read memory as it is
        n = A.shape[-1]
        S = torch.empty_like(A, dtype=torch.float32, memory_format=torch.contiguous_format)
        R = torch.empty_like(S)
        key = (n, A.dtype, A.stride(), A.data_ptr() % 16 == 0)
        if n > on_chip.LARGEST:
            from .launch import roots
        else:
            roots = on_chip.roots
        roots(A, S, R, ridge, rounding_tolerance(n, A.dtype), key)
        return Evaluation((S, R) if output == "both" else (S,) if output == "sqrt" else (R,))

    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        report_uncounted()
        S, R = (readable(T, torch.float32) for T in saved)
        GS, GR = (None if G is None else readable(G, torch.float32) for G in by_kind(cotangents, output))
        inputs = (S, R, S if GS is None else GS, S if GR is None else GR)
        out = torch.empty_like(S)
        has_S, has_R = GS is not None, GR is not None
        key = (S.shape[-1], has_S, has_R, *[T.data_ptr() % 16 == 0 for T in inputs])
        if S.shape[-1] > on_chip.LARGEST:
            from .launch import solve
        else:
            solve = on_chip.solve
        solve(*inputs, out, ridge, has_S, has_R, key)
        return out
