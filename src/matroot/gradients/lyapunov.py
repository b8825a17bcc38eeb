"""Lyapunov equation by the matrix sign iteration: the paper's backward."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .._tracing import is_host_readable
from ..backends import torch_ops
from ..methods._base import require_choice, require_count, require_positive
from ._base import ImplicitGradient


@dataclass(frozen=True)
class Lyapunov(ImplicitGradient):
    """Newton-Schulz steps towards sign([[B, C], [0, -B]]) = [[I, 2X], [0, -I]]: the paper's backward pass.

    They solve B X + X B = C, B being the root and C the upstream gradient, from B/nu and C/nu::

        B <- B (3I - B^2)/2,  C <- (3C - B^2 C + B C B - C B^2)/2,  X = C/2

    Because C is Hermitian, with W = B C the C-step is 3C - N - N^H, N = B (W - W^H/2):
    4 products an iteration where the textbook form takes 6, and 2 in the last.
    Where B has (nearly) zero eigenvalues b_i, b_j the steps do not converge; X_ij is then
    1.5^iterations C_ij/(2 nu) instead of infinite.

    Args:
        iterations: steps taken, at most.
        tolerance: a matrix stops changing once ||B - I||_F is below this; None never stops.
        norm: ``"input"`` is nu = sqrt(||B^2||_F), which is sqrt(||A||_F) for a root of A; ``"root"`` is nu = ||B||_F as
            printed in the paper, larger, so it converges later.

    Raises:
        ValueError: if ``iterations`` is not a positive integer, ``tolerance`` is not positive, or ``norm`` is another
            name.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0])).requires_grad_()
        >>> matroot.sqrtm(A, "pade", gradient=matroot.Lyapunov(iterations=12)).trace().backward()
        >>> bool(A.grad.isfinite().all())
        True
    """

    name = "lyapunov"

    iterations: int = 8
    tolerance: float | None = None
    norm: Literal["input", "root"] = "input"

    def __post_init__(self) -> None:
        require_count(self, "iterations")
        require_choice(self, "norm", ("input", "root"))
        if self.tolerance is not None:
            require_positive(self, "tolerance")

    def solve(self, B: Tensor, C: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        square = torch_ops.product(B, B)
        nu = torch.sqrt(torch_ops.frobenius(square)) if self.norm == "input" else torch_ops.frobenius(B)
        B, square, C = B / nu, square / nu**2, C / nu
        active = None
        for step in range(self.iterations):
            if step > 0:
                B = torch.sub(1.5 * B, torch_ops.product(B, square), alpha=0.5)
            if 0 < step < self.iterations - 1:
                square = torch_ops.product(B, B)
            if self.tolerance is not None:
                far = torch_ops.frobenius(B - torch_ops.identity(B)) >= self.tolerance
                active = far if active is None else active & far
                if is_host_readable(active) and not active.any():
                    break
            N = torch_ops.product(B, C)
            # Each replaces the one before, to free its memory.
            N = torch.sub(N, torch_ops.adjoint(N), alpha=0.5)
            N = torch_ops.product(B, N)
            N = torch_ops.hermitian(N)
            N = 1.5 * C - N
            C = N if active is None else torch.where(active, N, C)
            del N
        return 0.5 * C
