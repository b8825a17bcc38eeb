"""The paper's methods and its gradient on a GPU, one launch each: from their descriptions to kernels' arguments."""

from functools import cache
from operator import index

import torch
from torch import Tensor

from ....coefficients import pade_in_x, taylor
from ....gradients import Lyapunov
from ....methods import Method, NewtonSchulz, Pade, Taylor
from ....methods._base import Output, is_inverse
from ....methods.pade import poles
from . import launch as triton_series


def evaluate(A: Tensor, ridge: float, method: Method, output: Output, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """The output roots of (k, n, n) matrices, not only of clean ones."""
    outputs = (output != "invsqrt", output != "sqrt", dtype)
    if isinstance(method, NewtonSchulz):
        form = method.form == "single", method.norm == "trace"
        return tuple(triton_series.newton_schulz(A, ridge, index(method.iterations), *form, *outputs))
    if isinstance(method, Taylor):
        launch = triton_series.taylor
    else:
        assert isinstance(method, Pade)
        launch = triton_series.pade if method.by_polynomials else triton_series.partial_fractions
    return tuple(launch(A, ridge, _coefficients(method), *outputs))


def solve(
    roots: tuple[Tensor, ...],
    cotangents: tuple[Tensor | None, ...],
    ridge: float,
    gradient: Lyapunov,
    output: Output,
    dtype: torch.dtype,
) -> Tensor:
    """The gradient by A, given those by its roots; not all of them None."""
    S, R = _placed(roots, output)
    GS, GR = _placed(cotangents, output)
    steps = index(gradient.iterations), gradient.tolerance, gradient.norm == "input"
    return triton_series.lyapunov(S, R, GS, GR, ridge, *steps, dtype)


def _placed(values: tuple[Tensor | None, ...], output: Output) -> tuple[Tensor | None, Tensor | None]:
    """For the root and for the inverse root; None for one that is not output."""
    of = dict(zip(is_inverse(output), values, strict=True))
    return of.get(False), of.get(True)


@cache
def _coefficients(method: Taylor | Pade) -> triton_series.Table:
    degree = index(method.degree)
    if isinstance(method, Taylor):
        rows = [taylor(degree), taylor(degree, inverse=True)]
    elif method.by_polynomials:
        rows = pade_in_x(degree)
    else:
        rows = [poles(degree, inverse=False), poles(degree, inverse=True)]
    return tuple(tuple(map(float, row)) for row in rows)
