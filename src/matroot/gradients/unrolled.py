"""Reverse-mode differentiation of the forward arithmetic."""

from dataclasses import dataclass

from ..methods import Method
from ._base import Gradient


@dataclass(frozen=True)
class Unrolled(Gradient):
    """No rule of our own: autograd differentiates every operation of the method.

    The only gradient that is consistent with a truncated method, and the one that keeps every
    intermediate matrix. With ``Eigen`` it is plain differentiation through
    ``torch.linalg.eigh``, whose gradient is not finite at repeated eigenvalues.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "newton-schulz", gradient=matroot.Unrolled()).trace().backward()
        >>> bool(A.grad.isfinite().all())
        True
    """

    name = "unrolled"

    def require(self, method: Method) -> None:
        if not method.unrolls:
            raise ValueError(
                f"gradient 'unrolled' would differentiate the approximation error of method '{method.name}', "
                f"not the root; use gradient='{method.gradient_names[-1]}'"
            )
