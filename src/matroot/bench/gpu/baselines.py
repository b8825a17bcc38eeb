"""What is compared on a GPU: matroot, PyTorch's ways, the paper's, and other libraries' decompositions."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import torch
from torch import Tensor

import matroot

from ..._timer import Work, seconds
from ..baselines import EighRoot, PaperRoot
from ..batched_eigh import takes_one_by_one
from ..entries import SOLVERS
from ..problems import Function, forward_backward

DIFFERENTIABLE: dict[str, Function] = {
    "auto": matroot.sqrtm,
    "minimax+krylov": partial(matroot.sqrtm, **SOLVERS["minimax+krylov"]),
    "paper": PaperRoot.apply,
    "ns": partial(matroot.sqrtm, **SOLVERS["ns"]),
    "torch eigh": partial(EighRoot.apply, False),
}
"""Forward and backward."""

LIBRARIES = ("cupy eigh", "jax eigh")
"""Forward only, and the decomposition alone."""

COMPILED = "torch.compile"

MANY = 2000
"""Matrices above which ``torch.linalg.eigh`` is left out where it takes them one by one."""


def works(A: Tensor, G: Tensor) -> tuple[dict[str, Work], dict[str, str]]:
    """What is timed, and why the others are not."""
    X = A.detach().requires_grad_()
    found: dict[str, Work] = {
        name: partial(forward_backward, function, X, G) for name, function in DIFFERENTIABLE.items()
    }
    notes: dict[str, str] = {}
    if len(A) > MANY and takes_one_by_one(torch.__version__, A.shape[-1]):
        del found["torch eigh"]
        notes["torch eigh"] = f"left out above {MANY} matrices: it takes them one by one"
    libraries, why = library_works(A.detach())
    return found | libraries, notes | why


def library_works(A: Tensor) -> tuple[dict[str, Work], dict[str, str]]:
    """Decompositions of other libraries, in the memory of ``A``, and why some are missing."""
    found: dict[str, Work] = {}
    notes: dict[str, str] = {}
    for name, prepare in zip(LIBRARIES, (_cupy_eigh, _jax_eigh), strict=True):
        try:
            found[name] = prepare(A)
        except ImportError:
            notes[name] = "not installed"
        except Exception as error:
            notes[name] = f"cannot take the matrices: {type(error).__name__}"
    return found, notes


def _cupy_eigh(A: Tensor) -> Work:
    cupy = import_module("cupy")
    return partial(cupy.linalg.eigh, cupy.from_dlpack(A))


def _jax_eigh(A: Tensor) -> Work:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes most of the memory
    jax = import_module("jax")
    if A.dtype in (torch.float64, torch.complex128):
        jax.config.update("jax_enable_x64", True)  # or it would compute in float32
    shared = import_module("jax.dlpack").from_dlpack(A)
    decompose = jax.jit(jax.numpy.linalg.eigh)
    return lambda: jax.block_until_ready(decompose(shared))


def versions() -> dict[str, str | None]:
    """Of the libraries that were imported."""
    return {name: getattr(sys.modules.get(name), "__version__", None) for name in ("triton", "cupy", "jax")}


def compiled(A: Tensor, G: Tensor, limit: float) -> tuple[Work, float]:
    """``Minimax`` with ``Krylov`` through ``torch.compile``, and its seconds; TimeoutError after ``limit``."""
    torch.compiler.reset()

    def root(X: Tensor) -> Tensor:
        return matroot.sqrtm(X, **SOLVERS["minimax+krylov"])

    function = torch.compile(root, fullgraph=True, dynamic=False)
    work = partial(forward_backward, function, A.detach().requires_grad_(), G)
    with time_limit(limit):
        return work, seconds(work, A.device.type)


@contextmanager
def time_limit(limit: float) -> Iterator[None]:
    """TimeoutError in the main thread after ``limit`` seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {limit:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
