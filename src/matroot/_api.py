"""The public functions: docstrings, and the pipeline from top to bottom."""

from typing import NamedTuple

from torch import Tensor

from ._autograd.fused import fused_roots
from ._autograd.roots import differentiable_roots
from ._checks import inspect
from ._inputs import clean, require_ridge
from ._plan import Plan, choose
from ._registry import require_output
from ._sharding import is_sharded, on_local_matrices
from ._tracing import autocast_disabled
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
    """Square root and inverse square root from one pass, and one solve on the way back.

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
        return on_local_matrices(lambda part: _evaluate(part, output, method, gradient, ridge, check, backend), A)
    plan = choose(A, method, gradient, backend)
    require_output(plan.method, output)
    if check:
        inspect(A, ridge)
    if A.shape[-1] == 0:
        return tuple(A.clone() for _ in is_inverse(output))
    if plan.backend == "torch":
        return _step_by_step(A, ridge, plan, output)
    return fused_roots(A, ridge, plan, output, _step_by_step)


def _step_by_step(A: Tensor, ridge: float, plan: Plan, output: Output) -> tuple[Tensor, ...]:
    with autocast_disabled(A):
        cleaned = clean(A, ridge)
        found = differentiable_roots(cleaned.matrix, cleaned.scale, plan.method, plan.gradient, output)
        return tuple(cleaned.restore(root, inverse) for root, inverse in zip(found, is_inverse(output), strict=True))
