"""Matrix arithmetic in plain PyTorch: traceable, differentiable, full precision.

Every n x n x n operation of the library goes through this file, so that precision
is decided in one place: float32 means float32, whatever the process-wide settings
for TF32 or bfloat16 products say.
"""

import torch
from torch import Tensor

from .._tracing import needs_grad

_CUDA_PRODUCTS = torch.backends.cuda.matmul
_OTHER_PRODUCTS = torch.backends.mkldnn.matmul  # pyright: ignore[reportAttributeAccessIssue]
_WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def adjoint(matrix: Tensor) -> Tensor:
    """Conjugate transpose of the last two dimensions."""
    return matrix.mH


def hermitian(matrix: Tensor) -> Tensor:
    """The symmetric (Hermitian) part."""
    return 0.5 * (matrix + adjoint(matrix))


def identity(like: Tensor) -> Tensor:
    """An n x n identity that broadcasts against ``like``."""
    return torch.diag_embed(like.new_ones(like.shape[-1]))


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` in the precision of the dtype."""
    if not reduced_precision(a):
        return a @ b
    if a.device.type == "cuda" and not needs_grad(a, b):
        return _three_pass_product(a, b)
    wide = _WIDE[a.dtype]
    return (a.to(wide) @ b.to(wide)).to(a.dtype)


def solve_positive(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve ``matrix @ X = right`` for a positive definite ``matrix``."""
    wide = _dtype_for_derivatives(matrix)
    factor, _ = torch.linalg.cholesky_ex(matrix.to(wide))
    return torch.cholesky_solve(right.to(wide), factor).to(right.dtype)


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors of a Hermitian matrix."""
    values, vectors = torch.linalg.eigh(matrix.to(_dtype_for_derivatives(matrix)))
    return values.to(matrix.real.dtype), vectors.to(matrix.dtype)


def frobenius(matrix: Tensor) -> Tensor:
    """Frobenius norm per matrix, shape (*, 1, 1).

    Rows first: one long sum is split among threads, differently in batches of other sizes.
    """
    return torch.linalg.vector_norm(torch.linalg.vector_norm(matrix, dim=-1, keepdim=True), dim=-2, keepdim=True)


def trace(matrix: Tensor) -> Tensor:
    """Real trace per matrix, shape (*, 1, 1)."""
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return (diagonal.real if diagonal.is_complex() else diagonal).sum(-1)[..., None, None]


def largest_eigenvalue_bound(matrix: Tensor) -> Tensor:
    """mean + standard deviation * sqrt(n - 1) of the eigenvalues, from trace and norm."""
    n = matrix.shape[-1]
    mean = trace(matrix) / n
    variance = (frobenius(matrix) ** 2 / n - mean**2).clamp_min(0)
    return mean.abs() + torch.sqrt((n - 1) * variance)


def rounding_tolerance(n: int, dtype: torch.dtype) -> float:
    """How far below zero rounding alone takes eigenvalues, relative to a bound of the largest.

    4 n eps of the compute dtype, and eps of ``dtype`` if that is narrower.
    """
    eps = torch.finfo(dtype).eps
    compute_eps = min(eps, torch.finfo(torch.float32).eps)
    return 4 * n * compute_eps + (eps if eps > compute_eps else 0.0)


def inverse_norm(factor: Tensor) -> Tensor:
    """The largest eigenvalue of (L L^H)^-1, shape (*,): an estimate from below, mostly within a factor of two.

    Three inverse iterations from a vector of ones with irregular signs. Meaningless where the
    factorisation failed.
    """
    n = factor.shape[-1]
    signs = torch.cos(torch.arange(n, device=factor.device, dtype=factor.real.dtype).square()).sign()
    v = signs[:, None].expand(*factor.shape[:-1], 1).to(factor.dtype)
    growth = torch.linalg.vector_norm(v, dim=-2)
    for _ in range(3):
        v = torch.cholesky_solve(v / growth[..., None], factor)
        growth = torch.linalg.vector_norm(v, dim=-2)
    return growth[..., 0]


def _dtype_for_derivatives(matrix: Tensor) -> torch.dtype:
    """The dtype for a factorisation whose own derivative formula uses plain products."""
    return _WIDE[matrix.dtype] if reduced_precision(matrix) and needs_grad(matrix) else matrix.dtype


def reduced_precision(matrix: Tensor) -> bool:
    """Whether the process-wide settings let products of this dtype lose digits."""
    return matrix.dtype in _WIDE and _reduced_on(matrix.is_cuda)


# Traced code takes the answer as a constant; PyTorch traces again when the setting changes.
@torch.compiler.assume_constant_result
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
