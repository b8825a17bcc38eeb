"""Newton-Schulz iteration (NS)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..backends import eager
from ._base import Method, Wanted, require_choice, require_count, select


@dataclass(frozen=True)
class NewtonSchulz(Method):
    """A fixed number of Newton-Schulz steps on X = A/norm(A).

    coupled: Y <- Y (3I - Z Y)/2, Z <- (3I - Z Y) Z/2 from Y = X, Z = I; Y -> X^(1/2), Z -> X^(-1/2)
    single:  Z <- (3Z - Z^3 X)/2 from Z = I; the root is X Z

    Both are the same function of the eigenvalues. ``norm`` is the Frobenius norm of the
    paper or the trace of the published code; either bounds the spectrum by one. After T
    steps an eigenvalue 0 is still 0 in the root and 1.5^T in the inverse root. Five steps
    are far from convergence when the condition number exceeds about ten. The coupled form
    is stable for any number of steps, the single form amplifies rounding once it has
    converged. Products: 3T - 3 for one root.
    """

    name = "newton-schulz"
    gradient_name = "unrolled"

    iterations: int = 5
    form: Literal["coupled", "single"] = "coupled"
    norm: Literal["frobenius", "trace"] = "frobenius"

    def __post_init__(self) -> None:
        require_count(self, "iterations")
        require_choice(self, "form", ("coupled", "single"))
        require_choice(self, "norm", ("frobenius", "trace"))

    def evaluate(self, A: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
        norm = eager.frobenius(A) if self.norm == "frobenius" else eager.trace(A)
        steps = self._coupled if self.form == "coupled" else self._single
        roots = steps(A / norm, wanted)
        scales = select(wanted, torch.sqrt(norm), torch.rsqrt(norm))
        return tuple(scale * root for scale, root in zip(scales, roots, strict=True))

    def _coupled(self, X: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
        eye = eager.identity(X)
        Y, Z = X, None  # Z = I: the first step needs no product with it
        for step in range(self.iterations):
            T = 1.5 * eye - 0.5 * (Y if Z is None else eager.product(Z, Y))
            last = step == self.iterations - 1
            if not last or wanted != "invsqrt":
                Y = eager.product(Y, T)
            if not last or wanted != "sqrt":
                Z = T if Z is None else eager.product(T, Z)
        return select(wanted, Y, Y if Z is None else Z)

    def _single(self, X: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
        Z = eager.identity(X).expand_as(X)
        for step in range(self.iterations):
            W = X if step == 0 else eager.product(Z, X)
            if step == self.iterations - 1 and wanted != "invsqrt":
                # X Z' = (3 W - W^2 Z)/2: the root without a separate product by X.
                WWZ = eager.product(W, W if step == 0 else eager.product(W, Z))
                root = 1.5 * W - 0.5 * WWZ
                if wanted == "sqrt":
                    return (root,)
            else:
                root = X
            Z = 1.5 * Z - 0.5 * (X if step == 0 else eager.product(eager.product(Z, Z), W))
        return select(wanted, root, Z)
