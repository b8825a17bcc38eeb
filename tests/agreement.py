"""When two results of the same matrix are the same: bit for bit where our own code computes, to rounding elsewhere.

Compiled code and kernels treat every matrix alone, so that neither its batch nor its address in memory matters. MKL,
LAPACK, cuBLAS and the sums of PyTorch add in an order that depends on both.
"""

import torch
from torch import Tensor

import matroot
from matroot.gradients import Gradient, Krylov
from matroot.methods import Method

OWN_CODE = ("compiled", "triton")


def computed_by(A: Tensor, method: Method, gradient: Gradient) -> tuple[str, str]:
    """The backends of the roots and of their gradient; the compiled code leaves ``Krylov`` to ordinary operations."""
    backend = matroot.choose(A, method, gradient).backend
    return backend, "torch" if isinstance(gradient, Krylov) else backend


def condition(A: Tensor, gaps: bool = False) -> Tensor:
    """Condition numbers (*) of the symmetric parts of ``A``; infinite where there is none.

    With ``gaps`` the distance of the nearest two eigenvalues counts like an eigenvalue, as it does for derivatives of
    eigenvectors.
    """
    wide = A.detach().to("cpu", torch.complex128 if A.is_complex() else torch.float64)
    finite = torch.isfinite(wide).all(-1).all(-1)
    wide = torch.where(finite[..., None, None], wide, 0)
    values = torch.linalg.eigvalsh(0.5 * wide + 0.5 * wide.mH)
    least = values[..., 0]
    if gaps and A.shape[-1] > 1:
        least = torch.minimum(least, values.diff().amin(-1))
    return torch.where(least > 0, values[..., -1] / least, torch.inf)


def rounding(n: int, dtype: torch.dtype, condition: float | Tensor) -> float | Tensor:
    """How far two evaluations of a root or of its gradient may lie apart, relative to their Frobenius norm.

    Either is exact for a matrix within d = n eps ||A|| of A. That moves the root by sqrt(k)/2 d at most, the inverse
    root by k/2 d and the solution of a Lyapunov equation by k/2 d, k being the condition number. The gradient of the
    inverse root takes two factors and a solve: 3/2 k d, and two evaluations 3 k d. Four, since norms differ.
    """
    return 4 * n * torch.finfo(dtype).eps * condition


def assert_same(found: Tensor, expected: Tensor, backend: str, condition: float | Tensor) -> None:
    """Results (*, n, n) of equal matrices of this condition number, a number or (*), computed on this backend."""
    torch.testing.assert_close(torch.isnan(found), torch.isnan(expected), rtol=0, atol=0)
    if backend in OWN_CODE:
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        return
    wide = torch.complex128 if expected.is_complex() else torch.float64
    a, b = (X.detach().to("cpu", wide).nan_to_num(0.0) for X in (found, expected))
    difference, size = torch.linalg.matrix_norm(a - b), torch.linalg.matrix_norm(b)
    zero = (size == 0) | (torch.linalg.matrix_norm(a) == 0)
    allowed = torch.where(zero, 0.0, rounding(expected.shape[-1], expected.dtype, condition) * size)
    assert (difference <= allowed).all(), f"differences {difference.tolist()}, allowed {allowed.tolist()}"
