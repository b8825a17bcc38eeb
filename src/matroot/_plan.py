"""What ``method="auto"`` does, and why."""

from dataclasses import dataclass

from torch import Tensor

from ._choices import choose_gradient, choose_method
from ._fused import applies
from ._inputs import require_matrices
from .gradients import Exact, Gradient, Krylov, Smith
from .methods import Eigen, Method, Minimax


@dataclass(frozen=True)
class Plan:
    """How roots of a tensor are computed; prints as a sentence."""

    method: Method
    gradient: Gradient
    fused: bool
    """Whether cleaning, method and gradient are one: over chunks that stay in cache, or in one launch each way."""
    reason: str

    def __str__(self) -> str:
        way = "fused" if self.fused else "step by step"
        return f"{self.method} with gradient {self.gradient}, {way}: {self.reason}"


def choose(A: Tensor, method: str | Method = "auto", gradient: str | Gradient | None = None) -> Plan:
    """The plan that ``sqrtm``, ``invsqrtm`` and ``roots`` follow for ``A`` (*, n, n) and these arguments.

    ``"auto"`` looks at device, dtype, n and the number of matrices, never at their values:

    ============================  =====================  ======================
    where                         n, number of matrices  plan
    ============================  =====================  ======================
    CPU, real float32 or float64  n <= 128, or n <= 256  ``Minimax``, ``Smith``
                                  and four matrices
    CPU, otherwise                any                    ``Eigen``, ``Exact``
    CUDA, real float32 and half   n <= 1024              ``Minimax``, ``Smith``
    other devices, CUDA otherwise any                    ``Minimax``, ``Krylov``
    ============================  =====================  ======================

    On the CPU the line is where the measurements in benchmarks/results/solver-crossover-cpu.json cross. Elsewhere
    ``torch.linalg.eigh`` loops over the batch and synchronises with the host, or does not exist. Inside
    ``torch.compile`` and ``torch.func``, and in an installation without compiled code, the CPU decomposes too.
    With a gradient other than ``Krylov`` and ``Smith``, ``"auto"`` is ``Eigen`` everywhere.

    >>> print(matroot.choose(torch.eye(64).expand(100, 64, 64)))
    Minimax(tolerance=None, condition=None) with gradient Smith(rounds=None), fused: ...
    """
    require_matrices(A)
    if method == "auto":
        chosen, own, reason = _best(A)
        if gradient is not None and not isinstance(choose_gradient(gradient), Krylov | Smith):
            chosen, reason = Eigen(), "exact for every gradient"
    else:
        chosen = choose_method(method)
        own, reason = choose_gradient(chosen.gradient_name), "as asked"
    rule = own if gradient is None else choose_gradient(gradient)
    rule.require(chosen)
    return Plan(chosen, rule, applies(A, chosen, rule), reason)


def _best(A: Tensor) -> tuple[Method, Gradient, str]:
    device = A.device.type
    if device == "cuda" and applies(A, Minimax(), Smith()):
        return Minimax(), Smith(), "one launch each way"
    if device != "cpu":
        return Minimax(), Krylov(), f"products suit {device}, where decompositions wait for the host"
    if not applies(A, Minimax(), Smith()):
        return Eigen(), Exact(), "there is no compiled code for this call"
    batch, n = A.shape[:-2].numel(), A.shape[-1]
    if n > (128 if batch < 4 else 256):
        return Eigen(), Exact(), f"decompositions are faster for {batch} x {n} x {n}"
    return Minimax(), Smith(), "products in compiled code are faster up to this size"
