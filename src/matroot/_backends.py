"""Where the arithmetic can run, and why not elsewhere.

=========  ====================================================================================================
torch      ordinary operations, one after another: everything, everywhere
chunks     ``Eigen`` with ``Exact`` on the CPU, in chunks that stay in cache
native     compiled code on the CPU: ``Minimax`` with ``Krylov`` or ``Smith``, real
triton     kernels on a GPU, one each way up to n = 64, float32 and half types: ``Minimax`` with ``Smith`` up to
           n = 1024, ``Taylor``, ``Pade`` and ``NewtonSchulz`` with ``Lyapunov`` up to 64
=========  ====================================================================================================
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ._tracing import compiling, exporting, forward_mode, is_plain_eager, transforming
from .backends import torch_ops
from .backends.cpu import compiled
from .backends.triton import minimax as triton_roots
from .backends.triton.paper import launch as triton_series
from .gradients import Exact, Gradient, Krylov, Lyapunov, Smith
from .methods import Eigen, Method, Minimax, NewtonSchulz, Pade, Taylor

BACKENDS = ("triton", "compiled", "lapack", "torch")


class Situation(NamedTuple):
    """All that a plan depends on besides the caller's words."""

    device: torch.device
    dtype: torch.dtype
    shape: torch.Size
    special: str | None
    """Why only ordinary operations will do, in words."""
    traced: bool
    """Whether ``torch.compile`` is looking."""
    reduced: bool
    """Whether products on the CPU may lose digits by the process-wide settings."""

    @property
    def n(self) -> int:
        return self.shape[-1]

    @property
    def few(self) -> bool:
        """Fewer than four matrices. Not to be asked where ``special``: an exported graph is for any number."""
        return self.shape[:-2].numel() < 4


def situation(A: Tensor) -> Situation:
    special, traced = None, False
    if not is_plain_eager(A):
        traced = compiling() and not transforming() and not exporting()
        special = None if traced else "not inside torch.func and torch.export, nor for tensor subclasses"
    elif forward_mode():
        special = "not in forward mode"
    reduced = A.is_cpu and torch_ops.reduced_precision(A)
    return Situation(A.device, A.dtype, A.shape, special, traced, reduced)


def obstacle(backend: str, here: Situation, method: Method, gradient: Gradient) -> str | None:
    """Why a backend cannot do it, in words; None if it can."""
    if backend == "torch":
        return None
    if here.special is not None:
        return here.special
    if 0 in here.shape:
        return "there are no matrices"
    device = "cuda" if backend == "triton" else "cpu"
    if here.device.type != device:
        return f"the matrices are on {here.device.type}, not {device}"
    return {"triton": _triton, "compiled": _native, "lapack": _chunks}[backend](here, method, gradient)


def _triton(here: Situation, method: Method, gradient: Gradient) -> str | None:
    largest = triton_series.LARGEST
    if method == Minimax() and gradient == Smith():
        largest = triton_roots.LARGEST
    elif not isinstance(gradient, Lyapunov) or not isinstance(method, Taylor | Pade | NewtonSchulz):
        return f"no kernel for {_names(method, gradient)}"
    elif here.traced:
        return "inside torch.compile only 'minimax' with 'smith'"
    if here.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return "kernels are for float32, float16 and bfloat16"
    if here.n > largest:
        return f"matrices of size {here.n} are larger than {largest}"
    return triton_roots.missing(here.device)


def _native(here: Situation, method: Method, gradient: Gradient) -> str | None:
    if method != Minimax() or not isinstance(gradient, Krylov | Smith):
        return f"no compiled code for {_names(method, gradient)}, only for 'minimax' with 'smith' or 'krylov'"
    if here.dtype.is_complex:
        return "compiled code is for real matrices"
    if here.n > compiled.LARGEST:
        return f"matrices of size {here.n} are larger than {compiled.LARGEST}"
    if here.traced and not isinstance(gradient, Smith):
        return "inside torch.compile only with gradient 'smith'"
    return None if compiled.available() else "this installation has no compiled code: there was no C compiler"


def _chunks(here: Situation, method: Method, gradient: Gradient) -> str | None:
    if method != Eigen() or gradient != Exact():
        return f"chunks are for 'eigen' with 'exact', not for {_names(method, gradient)}"
    if here.dtype not in (torch.float32, torch.float64):
        return "chunks are for float32 and float64"
    if here.traced:
        return "not inside torch.compile"
    return "the process-wide precision of products is reduced" if here.reduced else None


def _names(method: Method, gradient: Gradient) -> str:
    return f"'{method.name}' with '{gradient.name}' and these settings"


def first_able(here: Situation, method: Method, gradient: Gradient) -> str:
    """The fastest backend that can do it."""
    return next(backend for backend in BACKENDS if obstacle(backend, here, method, gradient) is None)
