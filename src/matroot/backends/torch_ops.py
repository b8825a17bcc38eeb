"""Matrix arithmetic in ordinary PyTorch operations: traceable, differentiable, full precision.

Every n x n x n operation of methods and gradients goes through this file, so that precision
is decided in one place: float32 means float32, whatever the process-wide settings
for TF32 or bfloat16 products say.
"""

import torch
from torch import Tensor

from .._tracing import constant_in_traces, needs_grad
from ._base import Backend, CallContext

_CUDA_PRODUCTS = torch.backends.cuda.matmul
_OTHER_PRODUCTS = torch.backends.mkldnn.matmul  # pyright: ignore[reportAttributeAccessIssue]
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
"""Where what a dtype rounds can be computed."""
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


class TorchOps(Backend):
    """Any method with any gradient on any device, one operation after another."""

    name = "torch"

    def why_unsupported(self, context: CallContext, method: object, gradient: object) -> None:
        return None


def real_dtype(matrix: Tensor) -> torch.dtype:
    """The dtype of its eigenvalues."""
    return _REAL.get(matrix.dtype, matrix.dtype)


def rounding_tolerance(n: int, dtype: torch.dtype) -> float:
    """How far below zero, relative to the largest, an eigenvalue may lie by rounding alone.

    Covariances computed in float32 or float64 have eigenvalues down to about -4 n eps lambda_max. Rounding one to
    half precision, which is computed in float32, adds the eps of that.
    """
    half = dtype in (torch.float16, torch.bfloat16)
    rounding = 4 * n * torch.finfo(torch.float32 if half else dtype).eps
    return rounding + torch.finfo(dtype).eps if half else rounding


def adjoint(matrix: Tensor) -> Tensor:
    """Conjugate transpose of the last two dimensions."""
    return matrix.mH if matrix.is_complex() else matrix.transpose(-2, -1)


def hermitian(matrix: Tensor) -> Tensor:
    """The symmetric (Hermitian) part."""
    half = 0.5 * matrix  # first, so that no sum overflows
    return half + adjoint(half)


def identity(like: Tensor) -> Tensor:
    """An n x n identity that broadcasts against ``like``."""
    return torch.diag_embed(like.new_ones(like.shape[-1]))


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` in the precision of the dtype."""
    if not reduced_precision(a):
        return a @ b
    if a.device.type == "cuda" and not needs_grad(a, b):
        return _three_pass_product(a, b)
    wide = WIDE[a.dtype]
    return (a.to(wide) @ b.to(wide)).to(a.dtype)


def sandwich(outer: Tensor, inner: Tensor) -> Tensor:
    """outer inner outer, Hermitian."""
    return hermitian(product(product(outer, inner), outer))


def solve_positive(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve ``matrix @ X = right`` for a positive definite ``matrix``."""
    wide = _dtype_for_derivatives(matrix)
    factor, _ = torch.linalg.cholesky_ex(matrix.to(wide))
    return torch.cholesky_solve(right.to(wide), factor).to(right.dtype)


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors of a Hermitian matrix."""
    values, vectors = torch.linalg.eigh(matrix.to(_dtype_for_derivatives(matrix)))
    return values.to(real_dtype(matrix)), vectors.to(matrix.dtype)


def frobenius(matrix: Tensor) -> Tensor:
    """Frobenius norm per matrix, shape (*, 1, 1).

    Rows first: one long sum is split among threads, differently in batches of other sizes.
    """
    return torch.linalg.vector_norm(torch.linalg.vector_norm(matrix, dim=-1, keepdim=True), dim=-2, keepdim=True)


def trace(matrix: Tensor) -> Tensor:
    """Real trace per matrix, shape (*, 1, 1)."""
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return (diagonal.real if diagonal.is_complex() else diagonal).sum(-1)[..., None, None]


def root_of_scale(magnitude: Tensor) -> Tensor:
    """The square root of a power of four near ``magnitude``: dividing by that and multiplying by this are exact."""
    limits = torch.finfo(magnitude.dtype)
    return torch.exp2(torch.floor(0.5 * torch.log2(magnitude.clamp(limits.tiny, 0.5 * limits.max))))


def add_ridge_term(X: Tensor, ridge: float) -> Tensor:
    """The gradient with respect to A of a function of A + ridge (trace(A)/n) I, given that with respect to the sum."""
    return X + (ridge / X.shape[-1]) * trace(X) * identity(X) if ridge else X


def largest_eigenvalue_bound(matrix: Tensor) -> Tensor:
    """mean + standard deviation * sqrt(n - 1) of the eigenvalues, from trace and norm."""
    n = matrix.shape[-1]
    mean = trace(matrix) / n
    variance = (frobenius(matrix) ** 2 / n - mean**2).clamp_min(0)
    return mean.abs() + torch.sqrt((n - 1) * variance)


def inverse_norm(factor: Tensor) -> Tensor:
    """The largest eigenvalue of (L L^H)^-1, shape (*,): an estimate from below, mostly within a factor of two.

    Three inverse iterations from a vector of ones with irregular signs. Meaningless where the
    factorisation failed. ``torch.cholesky_solve`` takes batches on CUDA by MAGMA up to torch 2.11, which allocates
    memory for a single right-hand side and waits for the device: a CUDA graph cannot capture that.
    """
    v = irregular_signs(factor)
    growth = torch.linalg.vector_norm(v, dim=-2)
    transposed = adjoint(factor)
    for _ in range(3):
        v = torch.linalg.solve_triangular(factor, v / growth[..., None], upper=False)
        v = torch.linalg.solve_triangular(transposed, v, upper=True)
        growth = torch.linalg.vector_norm(v, dim=-2)
    return growth[..., 0]


def irregular_signs(like: Tensor) -> Tensor:
    """A vector (*, n, 1) of ones of either sign for each matrix (*, n, n)."""
    n = like.shape[-1]
    signs = torch.cos(torch.arange(n, device=like.device, dtype=real_dtype(like)).square()).sign()
    return signs[:, None].expand(*like.shape[:-1], 1).to(like.dtype)


def _dtype_for_derivatives(matrix: Tensor) -> torch.dtype:
    """The dtype for a factorisation whose own derivative formula uses plain products."""
    return WIDE[matrix.dtype] if reduced_precision(matrix) and needs_grad(matrix) else matrix.dtype


def reduced_precision(matrix: Tensor) -> bool:
    """Whether the process-wide settings let products of this dtype lose digits."""
    return matrix.dtype in WIDE and _reduced_on(matrix.is_cuda)


# Traced code takes the answer as a constant; PyTorch traces again when the setting changes.
@constant_in_traces
def _reduced_on(cuda: bool) -> bool:
    settings = _CUDA_PRODUCTS if cuda else _OTHER_PRODUCTS
    return settings.fp32_precision in ("tf32", "bf16")


# TF32 keeps the 10 leading bits of the 23-bit mantissa; this clears the other 13.
_TF32_BITS = -(1 << 13)


def _three_pass_product(a: Tensor, b: Tensor) -> Tensor:
    """A float32 product out of three TF32 ones.

    With a = a1 + a2 and a1 exactly representable in TF32, only a2 b2 is dropped:
    2^-22 relative to |a||b|, the size of float32's own rounding.
    """
    a1, b1 = _leading(a), _leading(b)
    return a1 @ b1 + (a1 @ (b - b1) + (a - a1) @ b1)


def _leading(matrix: Tensor) -> Tensor:
    if matrix.is_complex():
        return torch.view_as_complex(_leading(torch.view_as_real(matrix.resolve_conj())))
    bits = matrix.contiguous().view(torch.int32)
    return (bits & _TF32_BITS).view(torch.float32)
