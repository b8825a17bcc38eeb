"""Matrix Taylor polynomial (MTP)."""

from dataclasses import dataclass
from operator import index

import torch
from torch import Tensor

from .._tracing import constant_in_traces
from ..backends import torch_ops
from ..coefficients import taylor
from ._base import Method, Output, is_inverse, require_count, select
from ._polynomial import evaluate


@dataclass(frozen=True)
class Taylor(Method):
    """Truncated power series in Z = I - A/||A||_F.

    With K the degree::

        root:         sqrt(||A||_F) (I - sum_{k=1..K} |C(1/2, k)| Z^k)
        inverse root: (I + sum_{k=1..K} |C(-1/2, k)| Z^k) / sqrt(||A||_F)

    An eigenvalue 0 becomes sqrt(||A||_F) C(2K, K)/4^K in the root (0.168 of the scale at K = 11): the truncation acts
    as a regulariser, and it is not small. Products: about 2 sqrt(K).

    Args:
        degree: K.

    Raises:
        ValueError: if ``degree`` is not a positive integer.

    Example:
        >>> A = torch.diag(torch.tensor([1.0, 0.0]))
        >>> matroot.sqrtm(A, matroot.Taylor(degree=11)).diagonal()
        tensor([1.0000, 0.1682])
    """

    name = "taylor"
    gradient_names = ("lyapunov",)

    degree: int = 11

    def __post_init__(self) -> None:
        require_count(self, "degree")

    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        norm = torch_ops.frobenius(A)
        Z = torch_ops.identity(A) - A / norm
        series = [_series(index(self.degree), inverse) for inverse in is_inverse(output)]
        scales = select(output, torch.sqrt(norm), torch.rsqrt(norm))
        return tuple(scale * root for scale, root in zip(scales, evaluate(Z, series), strict=True))


# Rational arithmetic is not for tracing. The callers' ``index`` pins a degree that torch.compile
# would otherwise make symbolic.
@constant_in_traces
def _series(degree: int, inverse: bool) -> list[float]:
    return [float(c) for c in taylor(degree, inverse)]
