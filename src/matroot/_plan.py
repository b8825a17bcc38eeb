"""What ``method="auto"`` does, and why."""

from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor

from ._backends import BACKENDS, Situation, first_able, obstacle, situation
from ._inputs import require_matrices
from ._registry import choose_gradient, choose_method
from .gradients import Exact, Gradient, Krylov, Smith
from .methods import Eigen, Method, Minimax


@dataclass(frozen=True)
class Plan:
    """How roots of a tensor are computed; prints as a sentence."""

    method: Method
    gradient: Gradient
    backend: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} with gradient {self.gradient} on backend {self.backend}: {self.reason}"


def choose(
    A: Tensor, method: str | Method = "auto", gradient: str | Gradient | None = None, backend: str = "auto"
) -> Plan:
    """The plan that ``sqrtm``, ``invsqrtm`` and ``roots`` follow for ``A`` (*, n, n) and these arguments.

    ``"auto"`` looks at device, dtype, n and the number of matrices, never at their values:

    ============================  =====================  ======================
    where                         n, number of matrices  plan
    ============================  =====================  ======================
    CPU, real                     n <= 160, or n <= 256  ``Minimax``, ``Smith``
                                  and four matrices
    CPU, otherwise                any                    ``Eigen``, ``Exact``
    CUDA, real float32 and half   n <= 1024              ``Minimax``, ``Smith``
    other devices, CUDA otherwise any                    ``Minimax``, ``Krylov``
    ============================  =====================  ======================

    On the CPU the line is where the measurements in benchmarks/results/solver-crossover-cpu.json cross. Elsewhere
    ``torch.linalg.eigh`` loops over the batch and synchronises with the host, or does not exist. Inside
    ``torch.func`` and ``torch.export``, and in an installation without compiled code, the CPU decomposes too.
    With a gradient other than ``Krylov`` and ``Smith``, ``"auto"`` is ``Eigen`` everywhere.

    The backend is the fastest that can do it; one asked for by name that cannot is an error that says why:
    ``"torch"``, ordinary operations; ``"lapack"``, ``"compiled"`` and ``"triton"``, fused ones on CPU and GPU.

    >>> print(matroot.choose(torch.eye(64).expand(100, 64, 64)))
    Minimax(tolerance=None, condition=None) with gradient Smith(rounds=None) on backend compiled: ...
    """
    require_matrices(A)
    here = situation(A)
    if here.traced or here.special is not None:
        return _plan(here, method, gradient, backend)
    try:
        return _remembered_plan(here, method, gradient, backend)
    except TypeError:  # what the caller gave cannot be remembered, and is not valid either
        return _plan(here, method, gradient, backend)


def _plan(here: Situation, method: str | Method, gradient: str | Gradient | None, backend: str) -> Plan:
    if backend != "auto" and backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; valid names are {', '.join(('auto', *BACKENDS))}")
    if method == "auto":
        chosen, own, reason = _best(here, backend)
        if gradient is not None and not isinstance(choose_gradient(gradient), Krylov | Smith):
            chosen, reason = Eigen(), "exact for every gradient"
    else:
        chosen = choose_method(method)
        own, reason = choose_gradient(chosen.gradient_name), "as asked"
    rule = own if gradient is None else choose_gradient(gradient)
    rule.require(chosen)
    if backend == "auto":
        return Plan(chosen, rule, first_able(here, chosen, rule), reason)
    why = obstacle(backend, here, chosen, rule)
    if why is not None:
        raise ValueError(f"backend '{backend}' cannot do this: {why}")
    return Plan(chosen, rule, backend, reason)


_remembered_plan = lru_cache(1024)(_plan)


def _best(here: Situation, backend: str) -> tuple[Method, Gradient, str]:
    if backend == "lapack":
        return Eigen(), Exact(), "what the backend is for"
    kernels = "triton" if here.device.type == "cuda" else "compiled"
    able = obstacle(kernels, here, Minimax(), Smith()) is None and backend != "torch"
    if able and here.device.type == "cuda":
        return Minimax(), Smith(), "there are kernels for it"
    if here.device.type != "cpu":
        return Minimax(), Krylov(), f"products suit {here.device.type}, where decompositions wait for the host"
    if not able and backend != "compiled":
        return Eigen(), Exact(), "there is no compiled code for this call"
    if backend != "compiled" and here.n > (160 if here.few else 256):
        return Eigen(), Exact(), f"decompositions are faster at size {here.n}"
    return Minimax(), Smith(), "compiled products are faster"
