"""Launching the kernels of the paper's methods, where there is Triton and a GPU for it.

Matrices are float32, half or bfloat16, (k, n, n) of any strides, n <= LARGEST. The wanted roots of their symmetric
parts come back in ``dtype``: NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for
zero matrices.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..minimax import on_chip
from ..tables import on_device

LARGEST = 64
"""Larger matrices take other ways."""

Table = tuple[tuple[float, ...], ...]
"""Rows of one length: for the root and the inverse root, or numerator and denominator."""


def taylor(A: Tensor, ridge: float, polynomials: Table, sqrt: bool, inverse: bool, dtype: torch.dtype) -> list[Tensor]:
    """Polynomials in I - A/||A||_F, coefficients in ascending powers."""
    from .kernels import taylor_kernel

    rows, blocks = _blocks(polynomials)
    return _roots(taylor_kernel, A, ridge, (rows,), (blocks,), sqrt, inverse, dtype)


def pade(A: Tensor, ridge: float, polynomials: Table, sqrt: bool, inverse: bool, dtype: torch.dtype) -> list[Tensor]:
    """Numerator and denominator, polynomials in A/||A||_F with coefficients in ascending powers."""
    from .kernels import pade_kernel

    rows, blocks = _blocks(polynomials)
    return _roots(pade_kernel, A, ridge, (rows,), (blocks,), sqrt, inverse, dtype)


def partial_fractions(
    A: Tensor, ridge: float, poles: Table, sqrt: bool, inverse: bool, dtype: torch.dtype
) -> list[Tensor]:
    """The same by the poles of both roots."""
    from .kernels import fractions_kernel

    return _roots(fractions_kernel, A, ridge, (poles,), (len(poles[0]),), sqrt, inverse, dtype)


def newton_schulz(
    A: Tensor, ridge: float, iterations: int, single: bool, trace: bool, sqrt: bool, inverse: bool, dtype: torch.dtype
) -> list[Tensor]:
    """Steps with one variable or two on A over its trace or its Frobenius norm."""
    from .kernels import newton_schulz_kernel

    form = {"SINGLE": single, "TRACE": trace}
    return _roots(newton_schulz_kernel, A, ridge, (), (iterations,), sqrt, inverse, dtype, **form)


def lyapunov(
    S: Tensor | None,
    R: Tensor | None,
    GS: Tensor | None,
    GR: Tensor | None,
    ridge: float,
    iterations: int,
    tolerance: float | None,
    by_input: bool,
    dtype: torch.dtype,
) -> Tensor:
    """X with S X + X S = GS - R GR R, or R X + X R = -R^2 GR R^2 without S, and the ridge's share of it, in ``dtype``.

    S and R are float32 (k, n, n) and contiguous, the G's of any strides; their symmetric parts count.
    """
    from .kernels import lyapunov_kernel

    B = R if S is None else S
    assert B is not None
    inputs = [B if T is None else T for T in (S, R, GS, GR)]
    strides = [step for G in (GS, GR) for step in ((0, 0, 0) if G is None else G.stride())]
    out = torch.empty(B.shape, dtype=dtype, device=B.device)
    has = {"ALONE": S is None, "HAS_S": GS is not None, "HAS_R": GR is not None, "BY_INPUT": by_input}
    launch: Any = lyapunov_kernel[(len(B),)]
    with torch.cuda.device_of(B):
        launch(
            *inputs, out, B.shape[-1], *strides, float(ridge), -1.0 if tolerance is None else float(tolerance),
            iterations, **has, **_options(B),
        )  # fmt: skip
    return out


def _roots(
    kernel: Any,
    A: Tensor,
    ridge: float,
    tables: tuple[Table, ...],
    counts: tuple[int, ...],
    sqrt: bool,
    inverse: bool,
    dtype: torch.dtype,
    **form: bool,
) -> list[Tensor]:
    found = [torch.empty(A.shape, dtype=dtype, device=A.device) for wanted in (sqrt, inverse) if wanted]
    wide = 0.0 if A.dtype == torch.float32 else torch.finfo(A.dtype).eps
    data = [on_device(A.device, table) for table in tables]
    with torch.cuda.device_of(A):
        kernel[(len(A),)](
            A, found[0], found[-1], *data, A.shape[-1], *A.stride(), float(ridge), wide, *counts,
            SQRT=sqrt, INVERSE=inverse, **form, **_options(A),
        )  # fmt: skip
    return found


@cache
def _blocks(polynomials: Table) -> tuple[Table, int]:
    """Coefficients padded to 3 blocks + 1, and the number of blocks."""
    blocks = max(1, -(-(len(polynomials[0]) - 1) // 3))
    return tuple((*row, *[0.0] * (3 * blocks + 1 - len(row))) for row in polynomials), blocks


def _options(A: Tensor) -> dict[str, Any]:
    """How kernels are compiled, and how they make a float32 product of tensor core ones."""
    return on_chip(A.shape[-1]) | {"PRECISION": "bf16x6" if A.is_cuda else "ieee"}
