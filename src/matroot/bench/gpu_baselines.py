"""Contestants on a GPU: the product, PyTorch's ways, the paper's, and other libraries' decompositions."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

import matroot

from .baselines import EighRoot, PaperRoot
from .timer import Function, seconds

Work = Callable[[], object]

DIFFERENTIABLE: dict[str, Function] = {
    "auto": matroot.sqrtm,
    "minimax+krylov": partial(matroot.sqrtm, method="minimax", gradient="krylov"),
    "paper": PaperRoot.apply,
    "ns": partial(matroot.sqrtm, **matroot.preset("ns")),
    "torch eigh": partial(EighRoot.apply, False),
}
"""Forward and backward."""

LIBRARIES = ("cupy eigh", "jax eigh")
"""Forward only, and the decomposition alone."""

COMPILED = "torch.compile"

MANY = 2000
"""``torch.linalg.eigh`` takes batches on a GPU matrix by matrix, and is left out for more than these."""


def step(function: Callable[[Tensor], Any], X: Tensor, G: Tensor) -> tuple[Tensor, ...]:
    """Forward and backward; ``G`` is sent back to each output."""
    outputs = function(X)
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return torch.autograd.grad(outputs, X, (G,) * len(outputs))


def contestants(A: Tensor, G: Tensor) -> tuple[dict[str, Work], dict[str, str]]:
    """What takes turns, and why the others do not."""
    X = A.detach().requires_grad_()
    work: dict[str, Work] = {name: partial(step, function, X, G) for name, function in DIFFERENTIABLE.items()}
    notes: dict[str, str] = {}
    if len(A) > MANY:
        del work["torch eigh"]
        notes["torch eigh"] = f"left out above {MANY} matrices: it takes them one by one"
    for name, prepare in zip(LIBRARIES, (_cupy_eigh, _jax_eigh), strict=True):
        try:
            work[name] = prepare(A.detach())
        except ImportError:
            notes[name] = "not installed"
        except Exception as error:
            notes[name] = f"cannot take the matrices: {type(error).__name__}"
    return work, notes


def _cupy_eigh(A: Tensor) -> Work:
    cupy = import_module("cupy")
    return partial(cupy.linalg.eigh, cupy.from_dlpack(A))


def _jax_eigh(A: Tensor) -> Work:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or nothing is left for the others
    jax = import_module("jax")
    shared = import_module("jax.dlpack").from_dlpack(A)
    decompose = jax.jit(jax.numpy.linalg.eigh)
    return lambda: jax.block_until_ready(decompose(shared))


def versions() -> dict[str, str | None]:
    """Of the libraries that took part."""
    return {name: getattr(sys.modules.get(name), "__version__", None) for name in ("triton", "cupy", "jax")}


def compiled(A: Tensor, G: Tensor, most: float) -> tuple[Work, float]:
    """The product-only solver through ``torch.compile``, and the seconds that took; TimeoutError after ``most``."""
    torch.compiler.reset()

    def root(X: Tensor) -> Tensor:
        return matroot.sqrtm(X, matroot.Minimax(), gradient=matroot.Krylov())

    work = partial(step, torch.compile(root, fullgraph=True, dynamic=False), A.detach().requires_grad_(), G)
    with time_limit(most):
        return work, seconds(work, A.device.type)


@contextmanager
def time_limit(most: float) -> Iterator[None]:
    """TimeoutError in the main thread after ``most`` seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {most:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
