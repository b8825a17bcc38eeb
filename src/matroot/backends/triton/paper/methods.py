"""The paper's methods and its gradient on a GPU, one launch each: from frozen objects to arguments of kernels.

Matrices are float32, half or bfloat16, (k, n, n) of any strides, n <= LARGEST. Roots are NaN for matrices that hold NaN
or Inf or have a clearly negative eigenvalue, and zero for zero matrices.
"""

from functools import cache
from operator import index
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ....coefficients import pade_in_x, taylor
from ....gradients import Lyapunov
from ....methods import Method, NewtonSchulz, Pade, Taylor
from ....methods._base import Output, is_inverse
from ....methods.pade import poles
from ..._base import Cotangents, Tensors, by_kind
from ...constants import on_device
from ...torch_ops import rounding_tolerance
from ..launch import COMMON_OPTIONS
from ..on_chip.launch import tile_and_warps
from ..source_hash import hash_callees_first

LARGEST = 64
"""Kernels are for matrices up to this size."""


def evaluate(A: Tensor, ridge: float, method: Method, output: Output) -> tuple[Tensor, ...]:
    """Roots of the symmetric parts of ``A``, float32 (k, n, n)."""
    sqrt, inverse = output != "invsqrt", output != "sqrt"
    found = [torch.empty(A.shape, dtype=torch.float32, device=A.device) for _ in is_inverse(output)]
    launch = _launch(method)
    hash_callees_first(launch.kernel)
    tables = [on_device(A.device, launch.table)] if launch.table else []
    n = A.shape[-1]
    tolerances = [rounding_tolerance(n, kind) for kind in (torch.float32, A.dtype)]
    with torch.cuda.device_of(A):
        launch.kernel[(len(A),)](
            A, found[0], found[-1], *tables, n, *A.stride(), float(ridge), *tolerances, launch.count,
            SQRT=sqrt, INVERSE=inverse, **launch.switches, **_options(A),
        )  # fmt: skip
    return tuple(found)


def solve(roots: Tensors, cotangents: Cotangents, ridge: float, gradient: Lyapunov, output: Output) -> Tensor:
    """The gradient with respect to A, float32, given those with respect to its roots, not all of them None.

    That is X with S X + X S = GS - R GR R, or R X + X R = -R^2 GR R^2 without S, and the ridge's share of it. Roots are
    float32 (k, n, n) and contiguous, cotangents of any strides; their symmetric parts count.
    """
    from .kernels import lyapunov_kernel

    S, R = by_kind(roots, output)
    GS, GR = by_kind(cotangents, output)
    B = R if S is None else S
    assert B is not None
    inputs = [B if T is None else T for T in (S, R, GS, GR)]
    strides = [step for G in (GS, GR) for step in ((0, 0, 0) if G is None else G.stride())]
    out = torch.empty_like(B)
    has = {"ALONE": S is None, "HAS_S": GS is not None, "HAS_R": GR is not None}
    tolerance = -1.0 if gradient.tolerance is None else float(gradient.tolerance)
    hash_callees_first(lyapunov_kernel)
    launch: Any = lyapunov_kernel[(len(B),)]
    with torch.cuda.device_of(B):
        launch(
            *inputs, out, B.shape[-1], *strides, float(ridge), tolerance, index(gradient.iterations),
            **has, INPUT_NORM=gradient.norm == "input", **_options(B),
        )  # fmt: skip
    return out


class _Launch(NamedTuple):
    """How a method is launched."""

    kernel: Any
    table: tuple[tuple[float, ...], ...]
    """Rows of one length: for the root and the inverse root, or numerator and denominator; or nothing."""
    count: int
    """Blocks of the polynomials, the degree, or iterations."""
    switches: dict[str, bool]


@cache
def _launch(method: Method) -> _Launch:
    from .kernels import fractions_kernel, newton_schulz_kernel, pade_kernel, taylor_kernel

    if isinstance(method, NewtonSchulz):
        switches = {"SINGLE": method.form == "single", "TRACE": method.norm == "trace"}
        return _Launch(newton_schulz_kernel, (), index(method.iterations), switches)
    assert isinstance(method, Taylor | Pade)
    degree = index(method.degree)
    if isinstance(method, Taylor):
        return _Launch(taylor_kernel, *_blocks(taylor(degree), taylor(degree, inverse=True)), {})
    if method.by_polynomials:
        return _Launch(pade_kernel, *_blocks(*pade_in_x(degree)), {})
    table = [poles(degree, inverse=inverse) for inverse in (False, True)]
    return _Launch(fractions_kernel, tuple(tuple(map(float, row)) for row in table), degree, {})


def _blocks(*polynomials: Any) -> tuple[tuple[tuple[float, ...], ...], int]:
    """Coefficients in ascending powers, padded to 3 blocks + 1, and the number of blocks."""
    blocks = max(1, -(-(len(polynomials[0]) - 1) // 3))
    return tuple((*map(float, row), *[0.0] * (3 * blocks + 1 - len(row))) for row in polynomials), blocks


def _options(A: Tensor) -> dict[str, Any]:
    """How kernels are compiled, and how they make a float32 product of tensor core ones."""
    return COMMON_OPTIONS | tile_and_warps(A.shape[-1]) | {"PRECISION": "bf16x6" if A.is_cuda else "ieee"}
