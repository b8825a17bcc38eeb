"""The public functions: docstrings, and the pipeline from top to bottom."""

from typing import NamedTuple

from torch import Tensor

from ._autograd.fused import fused_roots
from ._autograd.roots import roots_by_torch_ops
from ._dispatch import BACKENDS, choose
from ._inputs import require_definite, require_ridge
from ._registry import require_output
from ._sharding import is_sharded, local_matrices, sharded_like
from .backends._base import FusedBackend
from .gradients import Gradient
from .methods import Method
from .methods._base import Output, is_inverse


class Roots(NamedTuple):
    """Square root and inverse square root of the same matrices."""

    sqrt: Tensor
    invsqrt: Tensor


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

    A: (*, n, n), real or complex; leading dimensions are batch, and no matrix affects another.
       The function is defined on the symmetric part of A, so gradients are symmetric.
    method: how the root is computed, a name or an object; ``"auto"`` chooses, see :func:`choose`.
    gradient: how its derivative is computed; None is the method's own choice.
    ridge: take the root of A + ridge * (trace(A)/n) * I instead; differentiable, scale-free.
    check: raise ValueError naming matrices that are not finite, not symmetric or indefinite;
       reads values on the host, so not under ``torch.compile``.
    backend: where it runs, see :func:`choose`; by default the fastest that can.

    Returns the root with A's shape and dtype; half and bfloat16 are computed in float32. A matrix
    that holds NaN or Inf, or has a clearly negative eigenvalue, gets a NaN root and a NaN
    gradient; eigenvalues negative by rounding count as zero. A zero matrix has root zero and
    derivative zero. What happens at other zero eigenvalues is said in the docstring of each method.

    Like ``scipy.linalg.sqrtm`` on symmetric input, ``torch.linalg.matrix_sqrth`` where that exists.
    """
    return _evaluate(A, "sqrt", method, gradient, ridge, check, backend)[0]


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

    Arguments and conventions are those of :func:`sqrtm`. Singular matrices give a finite result
    that depends on the method (see there); a zero matrix gives zero. For covariances of few
    samples pass a ``ridge``.

    Like ``scipy.linalg.inv(scipy.linalg.sqrtm(A))``, without forming either.
    """
    return _evaluate(A, "invsqrt", method, gradient, ridge, check, backend)[0]


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

    Arguments and conventions are those of :func:`sqrtm` and :func:`invsqrtm`.
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
    require_ridge(ridge)
    if is_sharded(A):
        found = _evaluate(local_matrices(A), output, method, gradient, ridge, check, backend)
        return sharded_like(A, found)
    plan = choose(A, method, gradient, backend)
    require_output(plan.method, output)
    if check:
        require_definite(A, ridge)
    if A.shape[-1] == 0:
        return tuple(A.clone() for _ in is_inverse(output))
    chosen = BACKENDS[plan.backend]
    if isinstance(chosen, FusedBackend):
        return fused_roots(A, ridge, chosen, plan.method, plan.gradient, output)
    return roots_by_torch_ops(A, ridge, plan.method, plan.gradient, output)
