"""The public functions: docstrings, and the pipeline from top to bottom."""

from typing import NamedTuple

from torch import Tensor

from ._autograd.fused import fused_roots
from ._autograd.roots import roots_by_torch_ops
from ._dispatch import prepare
from ._inputs import require_definite, require_ridge, require_roots
from ._sharding import is_sharded, local_matrices, sharded_like
from ._symbolic import one_node
from ._tracing import jit_tracing
from .gradients import Gradient
from .methods import Method
from .methods._base import Output, is_inverse


class Roots(NamedTuple):
    """Square root and inverse square root of the same matrices, what :func:`roots` returns.

    Attributes:
        sqrt: (*, n, n), the square root.
        invsqrt: (*, n, n), the inverse square root.
    """

    sqrt: Tensor
    invsqrt: Tensor


@one_node
def sqrtm(
    A: Tensor,
    method: str | Method = "auto",
    *,
    gradient: str | Gradient | None = None,
    ridge: float = 0.0,
    check: bool = False,
    backend: str = "auto",
) -> Tensor:
    """Principal square root of symmetric (Hermitian) positive semidefinite matrices.

    The function is defined on the symmetric part of ``A``, so gradients are symmetric, and no matrix of a batch affects
    another. A matrix that holds NaN or Inf, or has a clearly negative eigenvalue, gets a NaN root and a NaN gradient;
    eigenvalues negative by rounding count as zero. A zero matrix has root zero and derivative zero. What happens at
    other zero eigenvalues is said in the docstring of each method.

    Like ``scipy.linalg.sqrtm`` on symmetric input, ``torch.linalg.matrix_sqrth`` where that exists.

    Args:
        A: (*, n, n), float16, bfloat16, float32, float64, complex64 or complex128; leading dimensions are batch.
        method: how the root is computed, a name or an object; ``"auto"`` chooses, see :func:`choose`.
        gradient: how its derivative is computed, a name or an object; None is the method's own choice.
        ridge: take the root of A + ridge * (trace(A)/n) * I instead; differentiable, scale-free.
        check: raise for matrices that are not finite, not symmetric or indefinite; reads values on the host, so not
            under ``torch.compile`` or inside ``vmap``.
        backend: where it runs, see :func:`choose`; by default the fastest that can.

    Returns:
        The root, with the shape, dtype and device of ``A``; half and bfloat16 are computed in float32.

    Raises:
        TypeError: if ``A`` is not a strided tensor of a floating-point or complex dtype, or ``ridge`` is not a number.
        ValueError: if ``A`` is not square; if ``method``, ``gradient`` or ``backend`` is unknown or does not go with
            the others; if ``ridge`` is not from 0 to 1e30; with ``check``, naming the bad matrices.

    Example:
        >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]], requires_grad=True)
        >>> S = matroot.sqrtm(A)
        >>> torch.allclose(S @ S, A, atol=1e-5)
        True
        >>> S.sum().backward()
        >>> A.grad.shape
        torch.Size([2, 2])
    """
    return _evaluate(A, "sqrt", method, gradient, ridge, check, backend)[0]


@one_node
def invsqrtm(
    A: Tensor,
    method: str | Method = "auto",
    *,
    gradient: str | Gradient | None = None,
    ridge: float = 0.0,
    check: bool = False,
    backend: str = "auto",
) -> Tensor:
    """Inverse principal square root of symmetric (Hermitian) positive definite matrices.

    Conventions are those of :func:`sqrtm`. Singular matrices give a finite result that depends on the method (see
    there); a zero matrix gives zero. For covariances of few samples pass a ``ridge``.

    Like ``scipy.linalg.inv(scipy.linalg.sqrtm(A))``, without forming either.

    Args:
        A: (*, n, n), float16, bfloat16, float32, float64, complex64 or complex128; leading dimensions are batch.
        method: how the root is computed, a name or an object; ``"auto"`` chooses, see :func:`choose`.
        gradient: how its derivative is computed, a name or an object; None is the method's own choice.
        ridge: take the root of A + ridge * (trace(A)/n) * I instead; differentiable, scale-free.
        check: raise for matrices that are not finite, not symmetric or indefinite, see :func:`sqrtm`.
        backend: where it runs, see :func:`choose`; by default the fastest that can.

    Returns:
        The inverse root, with the shape, dtype and device of ``A``; half and bfloat16 are computed in float32.

    Raises:
        TypeError: as :func:`sqrtm`.
        ValueError: as :func:`sqrtm`, and for ``PowerIteration``, which has no inverse root.

    Example:
        >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
        >>> R = matroot.invsqrtm(A)
        >>> torch.allclose(R @ A @ R, torch.eye(2), atol=1e-5)
        True
    """
    return _evaluate(A, "invsqrt", method, gradient, ridge, check, backend)[0]


@one_node
def roots(
    A: Tensor,
    method: str | Method = "auto",
    *,
    gradient: str | Gradient | None = None,
    ridge: float = 0.0,
    check: bool = False,
    backend: str = "auto",
) -> Roots:
    """Square root and inverse square root from one pass, and one solve in the backward pass.

    Conventions are those of :func:`sqrtm` and :func:`invsqrtm`.

    Args:
        A: (*, n, n), float16, bfloat16, float32, float64, complex64 or complex128; leading dimensions are batch.
        method: how the roots are computed, a name or an object; ``"auto"`` chooses, see :func:`choose`.
        gradient: how their derivative is computed, a name or an object; None is the method's own choice.
        ridge: take the roots of A + ridge * (trace(A)/n) * I instead; differentiable, scale-free.
        check: raise for matrices that are not finite, not symmetric or indefinite, see :func:`sqrtm`.
        backend: where it runs, see :func:`choose`; by default the fastest that can.

    Returns:
        Both roots, a named tuple, each with the shape, dtype and device of ``A``.

    Raises:
        TypeError: as :func:`sqrtm`.
        ValueError: as :func:`invsqrtm`.

    Example:
        >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
        >>> S, R = matroot.roots(A)
        >>> torch.allclose(S @ R, torch.eye(2), atol=1e-5)
        True
    """
    return Roots(*_evaluate(A, "both", method, gradient, ridge, check, backend))


def _evaluate(
    A: Tensor,
    output: Output,
    method: str | Method,
    gradient: str | Gradient | None,
    ridge: float,
    check: bool,
    backend: str,
) -> tuple[Tensor, ...]:
    ridge = require_ridge(ridge)
    if is_sharded(A):
        found = _evaluate(local_matrices(A), output, method, gradient, ridge, check, backend)
        return sharded_like(A, found)
    plan, fused = prepare(A, method, gradient, backend, output)
    if check:
        require_definite(A, ridge)
    if fused is not None:
        found = fused_roots(A, ridge, fused)
        if check:
            require_roots(found[0])
        return found
    if not jit_tracing() and A.shape[-1] == 0:
        return tuple(A.clone() for _ in is_inverse(output))
    return roots_by_torch_ops(A, ridge, plan.method, plan.gradient, output)
