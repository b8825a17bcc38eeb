"""Everything between the caller's tensor and the clean matrix that methods see.

A clean matrix is float32 or float64 (or their complex kinds), finite, Hermitian, positive
semidefinite up to rounding, not zero, and has its largest entry between 1 and 4 before the
ridge is added. Matrices that cannot be cleaned are replaced by the identity, so that they
harm nothing, and their results are overwritten afterwards.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .backends import eager

COMPUTE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.complex64: torch.complex64,
    torch.complex128: torch.complex128,
}


class Clean(NamedTuple):
    """A clean matrix and the way back to the caller's."""

    matrix: Tensor
    scale: Tensor
    """Real, (*, 1, 1): what the caller's matrix was divided by; a power of four."""
    root_scale: Tensor
    """Square root of the scale; zero for a zero matrix."""
    poison: Tensor
    """NaN for matrices without a root, zero for all others."""
    source: Tensor
    """The caller's matrix in the compute dtype."""
    dtype: torch.dtype

    def restore(self, root: Tensor, inverse: bool) -> Tensor:
        """Undo the scaling, write NaN where there is no root, return the caller's dtype."""
        factor = self.root_scale
        if inverse:
            factor = torch.where(factor > 0, 1 / factor, 0)
        symmetric = (root + eager.adjoint(root)) * (0.5 * factor)
        # Adding poison * source makes value *and* gradient of a refused matrix NaN.
        return torch.addcmul(symmetric, self.poison, self.source).to(self.dtype)


def require_matrices(A: Tensor, name: str = "A") -> None:
    """Raise unless ``A`` is a batch of square matrices of an accepted dtype."""
    if not isinstance(A, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(A).__name__}")
    if A.dtype not in COMPUTE:
        accepted = ", ".join(str(dtype).removeprefix("torch.") for dtype in COMPUTE)
        raise TypeError(f"{name} has dtype {str(A.dtype).removeprefix('torch.')}; accepted are {accepted}")
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"{name} must have shape (*, n, n), got {tuple(A.shape)}")


def require_ridge(ridge: float) -> None:
    """Raise unless ``ridge`` is a finite nonnegative number."""
    if not 0 <= ridge < float("inf"):
        raise ValueError(f"ridge must be a finite number >= 0, got {ridge!r}")


def clean(A: Tensor, ridge: float) -> Clean:
    """Cast, scale, symmetrise, regularise; set aside what has no root. ``A`` must have n > 0."""
    source = A.to(COMPUTE[A.dtype])
    magnitude = torch.linalg.vector_norm(source.detach(), torch.inf, (-2, -1), keepdim=True)
    finite, nonzero = torch.isfinite(magnitude), magnitude > 0
    # A power of four, so that dividing by it and multiplying by its root are exact.
    limits = torch.finfo(magnitude.dtype)
    exponent = torch.floor(0.5 * torch.log2(magnitude.clamp(limits.tiny, 0.5 * limits.max)))
    root_scale = torch.where(finite, torch.exp2(exponent), 1)
    scale = root_scale * root_scale

    half = source / (2 * scale)
    matrix = half + eager.adjoint(half)
    if ridge:
        matrix = matrix + (ridge / A.shape[-1]) * eager.trace(matrix) * eager.identity(matrix)
    definite = _positive(matrix.detach(), A.dtype)
    usable = finite & nonzero & definite
    return Clean(
        matrix=torch.where(usable, matrix, eager.identity(matrix)),
        scale=scale,
        root_scale=torch.where(nonzero | ~finite, root_scale, 0),
        poison=torch.where(usable | (finite & ~nonzero), 0.0, torch.nan).to(source.dtype),
        source=source,
        dtype=A.dtype,
    )


def negative_tolerance(n: int, dtype: torch.dtype) -> float:
    """How negative, relative to ||A||_F, an eigenvalue may be and still count as zero.

    Rounding in the entries of the caller's dtype perturbs eigenvalues by up to eps ||A||_F;
    accumulating a covariance and factoring it adds a few n eps of the compute dtype.
    """
    return max(torch.finfo(dtype).eps, 4 * n * torch.finfo(COMPUTE[dtype]).eps)


def _positive(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """Which matrices are positive semidefinite up to rounding, shape (*, 1, 1).

    A Cholesky factorisation of the slightly shifted matrix exists exactly then. It costs a
    sixth of a product in arithmetic and does not synchronise. ONNX has no such operation:
    exported graphs trust their input.
    """
    if torch.onnx.is_in_onnx_export():
        return torch.ones_like(matrix[..., :1, :1], dtype=torch.bool)
    shift = negative_tolerance(matrix.shape[-1], dtype) * eager.frobenius(matrix)
    _, info = torch.linalg.cholesky_ex(matrix + shift * eager.identity(matrix))
    return (info == 0)[..., None, None]
