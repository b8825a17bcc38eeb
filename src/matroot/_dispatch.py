"""Where and how a call runs: its context, the method and gradient of ``"auto"``, the fastest backend."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ._autograd.fused import FusedCall, fused_call
from ._inputs import require_matrices
from ._names import valid_names
from ._registry import choose_gradient, choose_method, require_output
from ._tracing import forward_mode, is_plain_eager, traced_by_compile
from .backends import torch_ops
from .backends._base import Backend, CallContext, FusedBackend
from .backends.composite.embedded import Embedded
from .backends.composite.refined import Refined
from .backends.cpu.compiled import Compiled
from .backends.cpu.lapack import Lapack
from .backends.torch_ops import TorchOps
from .backends.triton.backend import Triton
from .gradients import Exact, Gradient, Krylov, Smith
from .methods import Eigen, Method, Minimax
from .methods._base import Output

_KERNELS = (Triton(), Compiled())
_REFINED = Refined(*_KERNELS)
BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (*_KERNELS, Lapack(), _REFINED, Embedded(*_KERNELS, _REFINED), TorchOps())
}
"""Fastest first, down to the one that takes every call."""


@dataclass(frozen=True)
class Plan:
    """How roots of a tensor are computed; prints as a sentence.

    Attributes:
        method: computes the roots.
        gradient: computes their derivative.
        backend: the name of where both run.
        reason: why this method, in a few words.
    """

    method: Method
    gradient: Gradient
    backend: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} with gradient {self.gradient} on backend {self.backend}: {self.reason}"


def choose(
    A: Tensor, method: str | Method = "auto", gradient: str | Gradient | None = None, backend: str = "auto"
) -> Plan:
    """The plan that ``sqrtm``, ``invsqrtm`` and ``roots`` follow for a tensor and these arguments.

    ``"auto"`` looks at device, dtype, n and the number of matrices, never at their values:

    =============================  ======================  =======================
    where                          n, number of matrices   plan
    =============================  ======================  =======================
    CPU, float32 and half types    n <= 256, or n <= 384   ``Minimax``, ``Smith``
                                   from four matrices on
    CPU, float64                   n <= 128, or n <= 256   ``Minimax``, ``Smith``
                                   from four matrices on
    CPU, complex64                 n <= 48, or n <= 96     ``Minimax``, ``Smith``
                                   from four matrices on
    CPU, complex128                n <= 32, from four      ``Minimax``, ``Smith``
                                   matrices on
    CPU, otherwise                 any                     ``Eigen``, ``Exact``
    CUDA, real                     n <= 16384              ``Minimax``, ``Smith``
    CUDA, complex                  n <= 8192               ``Minimax``, ``Smith``
    other devices, CUDA otherwise  any                     ``Minimax``, ``Krylov``
    =============================  ======================  =======================

    On the CPU the lines are where the measurements in benchmarks/results/solver-crossover-cpu.json cross, between those
    of covariances and those of condition 1e4, which take up to twice as long. Elsewhere ``torch.linalg.eigh`` loops
    over the batch and synchronises with the host, or does not exist. Inside ``torch.func``, ``torch.export`` and
    ``torch.jit.trace``, and in an installation without compiled code, the CPU decomposes too. With a gradient other
    than ``Krylov`` and ``Smith``, ``"auto"`` is ``Eigen`` everywhere. A method named without a gradient takes its own,
    for ``Minimax`` that of the fastest backend.

    The backend is the fastest that supports the call:

    ============  ================================================================================================
    backend       what it does
    ============  ================================================================================================
    ``torch``     ordinary operations, one after another: everything, everywhere
    ``lapack``    ``Eigen`` with ``Exact`` on the CPU, all dtypes but the half ones
    ``compiled``  compiled code on the CPU: ``Minimax`` with ``Krylov`` or ``Smith``, real
    ``triton``    kernels on NVIDIA GPUs, float32 and half types: ``Minimax`` with ``Smith`` up to n = 16384,
                  ``Taylor``, ``Pade`` and ``NewtonSchulz`` with ``Lyapunov`` up to n = 64
    ``refined``   ``Minimax`` with ``Smith``, as they are by default, in float64, from float32 results of ``triton``
                  or ``compiled``; asks the host whether they converged, so not in a CUDA graph or ``torch.compile``
    ``embedded``  the same for complex matrices, as real ones of twice the size
    ============  ================================================================================================

    Args:
        A: (*, n, n), the matrices that a call would take.
        method: a name or an object, or ``"auto"``.
        gradient: a name or an object; None is the method's own choice.
        backend: a name, or ``"auto"``.

    Returns:
        The plan; nothing is computed.

    Raises:
        TypeError: if ``A`` is not a strided tensor of a floating-point or complex dtype.
        ValueError: if ``A`` is not square, a name is unknown, the gradient cannot follow the method, or the backend
            asked for does not support the call: the message says why.

    Example:
        >>> print(matroot.choose(torch.eye(64), method="pade"))
        Pade(degree=5, form=None) with gradient Lyapunov(...) on backend torch: as asked
    """
    return prepare(A, method, gradient, backend, "sqrt").plan


class Prepared(NamedTuple):
    """All that is known of a call before its matrices are looked at."""

    plan: Plan
    fused: FusedCall | None
    """What a fused backend is told; None: ordinary operations follow the plan."""


def prepare(A: Tensor, method: str | Method, gradient: str | Gradient | None, backend: str, output: Output) -> Prepared:
    """``choose``, and whether the method computes the output: looked up, where there was such a call before."""
    require_matrices(A)
    context = context_of(A)
    if context.traced or context.restriction is not None:
        return _prepare(context, method, gradient, backend, output)
    try:
        return _cached(context, method, gradient, backend, output)
    except TypeError:  # what the caller gave is not hashable, and not valid either
        return _prepare(context, method, gradient, backend, output)


def _prepare(
    context: CallContext, method: str | Method, gradient: str | Gradient | None, backend: str, output: Output
) -> Prepared:
    plan = _plan(context, method, gradient, backend)
    require_output(plan.method, output)
    chosen = BACKENDS[plan.backend]
    fused = isinstance(chosen, FusedBackend)
    return Prepared(plan, fused_call(chosen, plan.method, plan.gradient, output) if fused else None)


_cached = lru_cache(1024)(_prepare)


def context_of(A: Tensor) -> CallContext:
    """What the plan for ``A`` depends on."""
    restriction, traced = None, False
    if not is_plain_eager(A):
        traced = traced_by_compile()
        restriction = None if traced else "not inside torch.func, torch.export and traces, nor for tensor subclasses"
    elif forward_mode():
        restriction = "not in forward mode"
    reduced = A.is_cpu and torch_ops.reduced_precision(A)
    dtype = A.dtype
    captured = dtype in _WIDE and A.is_cuda and not traced and torch.cuda.is_current_stream_capturing()
    return CallContext(A.device, dtype, A.shape, restriction, traced, reduced, captured)


_WIDE = (torch.float64, torch.complex128)
"""What values are read of, so that a CUDA graph takes another backend."""


def _plan(context: CallContext, method: str | Method, gradient: str | Gradient | None, backend: str) -> Plan:
    if not isinstance(backend, str) or (backend != "auto" and backend not in BACKENDS):
        raise ValueError(f"unknown backend {backend!r}; {valid_names(backend, ('auto', *BACKENDS))}")
    if method == "auto":
        chosen, own, reason = _auto(context, backend)
        if gradient is not None and not isinstance(choose_gradient(gradient), Krylov | Smith):
            chosen, reason = Eigen(), "exact for every gradient"
    else:
        chosen, reason = choose_method(method), "as asked"
        own = _own_gradient(context, chosen, backend)
    rule = own if gradient is None else choose_gradient(gradient)
    rule.require(chosen)
    if backend == "auto":
        return Plan(chosen, rule, fastest_supported(context, chosen, rule), reason)
    why = BACKENDS[backend].why_unsupported(context, chosen, rule)
    if why is not None:
        raise ValueError(f"backend '{backend}' cannot do this: {why}")
    return Plan(chosen, rule, backend, reason)


def fastest_supported(context: CallContext, method: Method, gradient: Gradient) -> str:
    """The name of the fastest backend that supports the call."""
    return next(name for name in BACKENDS if BACKENDS[name].why_unsupported(context, method, gradient) is None)


def _own_gradient(context: CallContext, method: Method, backend: str) -> Gradient:
    """The gradient of a method that is named alone: the first that a fused backend supports, else the last; the first
    too if such a backend is named, which then says why it does not."""
    candidates = [choose_gradient(name) for name in method.gradient_names]
    for candidate in candidates[:-1]:
        found = fastest_supported(context, method, candidate) if backend == "auto" else backend
        if isinstance(BACKENDS[found], FusedBackend):
            return candidate
    return candidates[-1]


def _auto(context: CallContext, backend: str) -> tuple[Method, Gradient, str]:
    """Method, gradient and reason where the caller leaves the method open."""
    if backend == "lapack":
        return Eigen(), Exact(), "what the backend is for"
    if backend != "auto" and isinstance(BACKENDS[backend], FusedBackend):
        return Minimax(), Smith(), "what the backend is for"
    on_cpu = context.device.type == "cpu"
    found = "torch" if backend == "torch" else fastest_supported(context, Minimax(), Smith())
    fused = isinstance(BACKENDS[found], FusedBackend)
    if fused and not on_cpu:
        return Minimax(), Smith(), "there are kernels for it"
    if not on_cpu:
        return Minimax(), Krylov(), f"products suit {context.device.type}, where decompositions wait for the host"
    if not fused:
        return Eigen(), Exact(), "there is no compiled code for this call"
    largest_of_few, largest = _LARGEST_MINIMAX_ON_CPU.get(context.dtype, _LARGEST_MINIMAX_IN_FLOAT32_ON_CPU)
    if context.n > (largest_of_few if context.few else largest):
        return Eigen(), Exact(), f"decompositions are faster at size {context.n}"
    return Minimax(), Smith(), "compiled products are faster"


_LARGEST_MINIMAX_ON_CPU = {torch.float64: (128, 256), torch.complex64: (48, 96), torch.complex128: (0, 32)}
_LARGEST_MINIMAX_IN_FLOAT32_ON_CPU = (256, 384)
"""Sizes of few matrices, and of more, up to which compiled products are faster than a decomposition."""
