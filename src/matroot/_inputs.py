"""Everything between the caller's tensor and the clean matrix that methods see.

A clean matrix is float32 or float64 (or their complex kinds), finite, Hermitian, positive
semidefinite up to rounding, not zero, and of moderate size: its largest entry is between 1/(1 + ridge)
and 4, except near the end of the dtype's range. Matrices that cannot be cleaned are replaced by a
harmless one, and their results are overwritten afterwards.
"""

from collections.abc import Iterator
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from ._tracing import is_batched, jit_tracing, transforming
from .backends import torch_ops

COMPUTE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.complex64: torch.complex64,
    torch.complex128: torch.complex128,
}


class Clean(NamedTuple):
    """A clean matrix, and how to restore results for it to the caller's scale and dtype."""

    matrix: Tensor
    scale: Tensor
    """Real, (*, 1, 1): what the caller's matrix was divided by; a power of four without a ridge."""
    root_scale: Tensor
    """Square root of the scale; zero for a zero matrix."""
    nan_mask: Tensor
    """NaN for matrices without a root, zero for all others."""
    source: Tensor
    """The caller's matrix in the compute dtype."""
    dtype: torch.dtype

    def restore(self, root: Tensor, inverse: bool) -> Tensor:
        """Undo the scaling, write NaN where there is no root, return the caller's dtype."""
        factor = self.root_scale
        if inverse:
            factor = torch.where(factor > 0, 1 / factor, 0)
        symmetric = (root + torch_ops.adjoint(root)) * (0.5 * factor)
        # Adding nan_mask * source makes value *and* gradient of a refused matrix NaN.
        return torch.addcmul(symmetric, self.nan_mask, self.source).to(self.dtype)


def require_tensor(x: Tensor, name: str) -> None:
    """Raise for arrays of NumPy, lists and all else that is no tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}")


def require_matrices(A: Tensor, name: str = "A") -> None:
    """Raise unless ``A`` is a batch of square matrices of an accepted dtype."""
    require_tensor(A, name)
    if A.layout is not torch.strided or A.is_nested:
        layout = "nested" if A.is_nested else str(A.layout).removeprefix("torch.")
        raise TypeError(f"{name} has layout {layout}; accepted are strided tensors, see Tensor.to_dense")
    if A.dtype not in COMPUTE:
        accepted = ", ".join(str(dtype).removeprefix("torch.") for dtype in COMPUTE)
        raise TypeError(f"{name} has dtype {str(A.dtype).removeprefix('torch.')}; accepted are {accepted}")
    shape = A.shape
    if len(shape) < 2 or not _is_square(A):
        raise ValueError(f"{name} must have shape (*, n, n), got {tuple(shape)}")


def _is_square(A: Tensor) -> bool:
    if jit_tracing():  # where sizes are tensors, and PyTorch warns of what depends on their values
        return A.is_same_size(A.mT)
    return A.shape[-1] == A.shape[-2]


def require_ridge(ridge: float) -> float:
    """The number that ``ridge`` is, NumPy's too; raise unless every dtype can add it."""
    if isinstance(ridge, bool) or not isinstance(ridge, (int, float, Real)):
        raise TypeError(f"ridge must be a number, got {type(ridge).__name__}")
    number = ridge if isinstance(ridge, (int, float)) else float(ridge)
    if not 0 <= number <= 1e30:
        raise ValueError(f"ridge must be from 0 to 1e30, got {ridge!r}")
    return number


def clean(A: Tensor, ridge: float) -> Clean:
    """Cast, symmetrise, scale, regularise; set aside what has no root. ``A`` must have n > 0."""
    source = A.to(COMPUTE[A.dtype])
    half = 0.5 * source
    matrix = half + torch_ops.adjoint(half)
    magnitude = matrix.detach().abs().amax((-2, -1), keepdim=True)  # an infinity norm refuses empty batches in traces
    finite, zero = torch.isfinite(magnitude), magnitude == 0
    root_scale = torch.where(finite, torch_ops.root_of_scale(magnitude), 1)
    matrix = matrix / (root_scale * root_scale)

    eye = torch_ops.identity(matrix)
    if ridge:
        # Divided by 1 + ridge, so that the largest eigenvalue grows no larger.
        matrix = (matrix + (ridge / A.shape[-1]) * torch_ops.trace(matrix) * eye) / (1 + ridge)
        root_scale = root_scale * (1 + ridge) ** 0.5
    definite, shift = _definiteness(matrix.detach(), A.dtype)
    if shift is not None:
        matrix = matrix + shift * eye
    usable = finite & ~zero & definite
    return Clean(
        matrix=torch.where(usable, matrix, _placeholder(matrix)),
        scale=root_scale * root_scale,
        root_scale=torch.where(zero, 0, root_scale),
        nan_mask=torch.where(usable | zero, 0.0, torch.nan).to(source.dtype),
        source=source,
        dtype=A.dtype,
    )


def _definiteness(matrix: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Which matrices are positive semidefinite up to rounding, and what to add to their diagonal.

    A half-precision matrix that needs the tolerance of its dtype, wider than that of the compute dtype, is shifted
    by it, so that no method meets an eigenvalue it cannot take. Both results have shape (*, 1, 1). ONNX has no
    factorisation: exported graphs trust their input.
    """
    if torch.onnx.is_in_onnx_export():
        return torch.ones_like(matrix[..., :1, :1], dtype=torch.bool), None
    n = matrix.shape[-1]
    bound = torch_ops.largest_eigenvalue_bound(matrix)
    definite = _has_factor(matrix, torch_ops.rounding_tolerance(n, matrix.dtype) * bound)
    if dtype == matrix.dtype:
        return definite, None
    shift = torch_ops.rounding_tolerance(n, dtype) * bound
    return definite | _has_factor(matrix, shift), torch.where(definite, 0, shift)


def _has_factor(matrix: Tensor, shift: Tensor) -> Tensor:
    """Whether matrix + shift * I has a Cholesky factor: a sixth of a product, no synchronisation."""
    _, info = torch.linalg.cholesky_ex(matrix + shift * torch_ops.identity(matrix))
    return (info == 0)[..., None, None]


def _placeholder(like: Tensor) -> Tensor:
    """What replaces matrices without a root: well-conditioned, distinct eigenvalues."""
    n = like.shape[-1]
    steps = torch.arange(n, device=like.device, dtype=torch_ops.real_dtype(like)) / n
    return torch.diag_embed((1 + steps).to(like.dtype))


_SHOWN = 5


def require_definite(A: Tensor, ridge: float) -> None:
    """Raise ValueError naming the matrices that are not finite, not Hermitian or indefinite: ``check=True``.

    Synchronises with a device. "Not Hermitian" means by more than 4 n eps of the largest entry, in the caller's dtype;
    "indefinite" that ordinary operations give NaN for the regularised matrix.
    """
    if transforming() and is_batched(A):
        raise ValueError("check=True cannot be used inside vmap, where no values can be read: check the batch outside")
    if A.numel() == 0:
        return
    A = A.detach()
    _refuse("not finite", ~torch.isfinite(A).all(-1).all(-1))
    size = A.abs().amax((-2, -1))
    asymmetry = (A / 2 - torch_ops.adjoint(A) / 2).abs().amax((-2, -1))
    _refuse("not symmetric (Hermitian)", asymmetry > 2 * A.shape[-1] * torch.finfo(A.dtype).eps * size)
    _refuse("indefinite", torch.isnan(clean(A, ridge).nan_mask)[..., 0, 0])


def require_roots(root: Tensor) -> None:
    """Raise ValueError naming the matrices without a root, after a fused backend.

    Its bound of the largest eigenvalue is closer than that of ``require_definite``.
    """
    _refuse("indefinite", torch.isnan(root.detach()).any(-1).any(-1))


def _refuse(what: str, bad: Tensor) -> None:
    if bad.any():
        raise ValueError(f"A is {what}{_where(bad)}")


def _where(bad: Tensor) -> str:
    if bad.ndim == 0:
        return ""
    indices = list(_indices(bad))
    shown = ", ".join(indices[:_SHOWN]) + (f" and {len(indices) - _SHOWN} more" if len(indices) > _SHOWN else "")
    return f" in {len(indices)} of {bad.numel()} matrices: {shown}"


def _indices(bad: Tensor) -> Iterator[str]:
    for index in bad.nonzero().tolist():
        yield str(index[0]) if len(index) == 1 else str(tuple(index))
