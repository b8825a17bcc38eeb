"""Power iteration (PI): scaling by the dominant eigenvalue."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backends import torch_ops
from ._base import Method, Output, require_count


@dataclass(frozen=True)
class PowerIteration(Method):
    """Exact on the dominant eigenpair, linear on everything else; not a square root.

    With the dominant pair sigma, u from power steps, the published form
    sqrt(sigma) u u^H + (A - sigma u u^H)/sqrt(sigma) is just A/sqrt(sigma): an eigenvalue x
    becomes x/sqrt(sigma), and zero stays zero. It is the baseline of second-order
    transformers. There is no inverse root. The steps start from a fixed vector; should they
    miss the dominant direction, sigma is at least the mean eigenvalue.

    Args:
        iterations: number of power steps.

    Raises:
        ValueError: if ``iterations`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 4.0]))
        >>> matroot.sqrtm(A, matroot.PowerIteration()).diagonal()
        tensor([0.5000, 2.0000])
    """

    name = "power-iteration"
    gradient_names = ("unrolled",)
    has_inverse = False
    is_root = False

    iterations: int = 20

    def __post_init__(self) -> None:
        require_count(self, "iterations")

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        # cos(1), cos(2), ...: fixed, and in no special position to structured matrices.
        count = torch.arange(1, A.shape[-1] + 1, device=A.device, dtype=torch_ops.real_dtype(A))
        u = torch.cos(count).to(A.dtype)[:, None]
        for _ in range(self.iterations):
            u = torch_ops.product(A, u)
            length = torch.linalg.vector_norm(u, dim=-2, keepdim=True)
            u = u / length.clamp_min(torch.finfo(A.dtype).tiny)
        rayleigh = torch_ops.trace(torch_ops.product(torch_ops.adjoint(u), torch_ops.product(A, u)))
        sigma = torch.maximum(rayleigh, torch_ops.trace(A) / A.shape[-1])
        return (A * torch.rsqrt(sigma),)
