"""Newton-Schulz iteration (NS)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..backends import torch_ops
from ._base import Method, Output, require_choice, require_count, select


@dataclass(frozen=True)
class NewtonSchulz(Method):
    """A fixed number of Newton-Schulz steps on X = A/norm(A).

    There are two forms, the same function of the eigenvalues::

        coupled: Y <- Y (3I - Z Y)/2, Z <- (3I - Z Y) Z/2 from Y = X, Z = I; Y -> X^(1/2), Z -> X^(-1/2)
        single:  Z <- (3Z - Z^3 X)/2 from Z = I; the root is X Z

    After T steps an eigenvalue 0 is still 0 in the root and 1.5^T in the inverse root. Five steps are far from
    convergence when the condition number exceeds about ten. Many steps amplify rounding: the single form once it has
    converged, the coupled form only where eigenvalues are zero (float32: beyond some 15 steps). Products: 3T - 3 for
    one root.

    Args:
        iterations: the number T of steps.
        form: ``"coupled"`` or ``"single"``.
        norm: ``"frobenius"``, the norm of the paper, or ``"trace"``, that of the published code; either bounds the
            spectrum by one.

    Raises:
        ValueError: if ``iterations`` is not a positive integer, or ``form`` or ``norm`` is another name.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 2.0]))
        >>> S = matroot.sqrtm(A, matroot.NewtonSchulz(iterations=10))
        >>> bool(matroot.residual(A, S) < 1e-4)
        True
    """

    name = "newton-schulz"
    gradient_names = ("unrolled",)

    iterations: int = 5
    form: Literal["coupled", "single"] = "coupled"
    norm: Literal["frobenius", "trace"] = "frobenius"

    def __post_init__(self) -> None:
        require_count(self, "iterations")
        require_choice(self, "form", ("coupled", "single"))
        require_choice(self, "norm", ("frobenius", "trace"))

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        norm = torch_ops.frobenius(A) if self.norm == "frobenius" else torch_ops.trace(A)
        steps = self._coupled if self.form == "coupled" else self._single
        roots = steps(A / norm, output)
        scales = select(output, torch.sqrt(norm), torch.rsqrt(norm))
        return tuple(scale * root for scale, root in zip(scales, roots, strict=True))

    def _coupled(self, X: Tensor, output: Output) -> tuple[Tensor, ...]:
        eye = torch_ops.identity(X)
        Y, Z = X, None  # Z = I: the first step needs no product with it
        for step in range(self.iterations):
            T = 1.5 * eye - 0.5 * (Y if Z is None else torch_ops.product(Z, Y))
            last = step == self.iterations - 1
            if not last or output != "invsqrt":
                Y = torch_ops.product(Y, T)
            if not last or output != "sqrt":
                Z = T if Z is None else torch_ops.product(T, Z)
        return select(output, Y, Y if Z is None else Z)

    def _single(self, X: Tensor, output: Output) -> tuple[Tensor, ...]:
        # The first step from Z = I needs no product.
        Z = 1.5 * torch_ops.identity(X) - 0.5 * X
        if self.iterations == 1:
            return select(output, torch_ops.product(X, Z), Z) if output != "invsqrt" else (Z,)
        for _ in range(self.iterations - 2):
            Z = 1.5 * Z - 0.5 * torch_ops.product(torch_ops.product(Z, Z), torch_ops.product(Z, X))
        # The last step in terms of W = Z X: W^2 Z = Z^3 X^2 gives the root, Z^2 W the inverse root.
        W = torch_ops.product(Z, X)
        roots = []
        if output != "invsqrt":
            roots.append(1.5 * W - 0.5 * torch_ops.product(torch_ops.product(W, W), Z))
        if output != "sqrt":
            roots.append(1.5 * Z - 0.5 * torch_ops.product(torch_ops.product(Z, Z), W))
        return tuple(roots)
