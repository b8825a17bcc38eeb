"""All kernels that a first call needs are compiled at once, in threads, instead of one after another."""

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch

from .compile_log import log_slow_compilation
from .source_hash import hash_callees_first

_begun: ContextVar[list[Any] | None] = ContextVar("kernels that are compiled together", default=None)


def compiling_only() -> bool:
    """Whether launches are to compile their kernels and not to run them."""
    return _begun.get() is not None


@cache
def hash_of_triton() -> Future:
    """Triton's hash of itself, which every compilation needs: of some hundred MB, in a thread, as it takes a while."""
    from triton.runtime.cache import triton_key

    pool = ThreadPoolExecutor(1)
    hashed = pool.submit(triton_key)
    pool.shutdown(wait=False)
    return hashed


@contextlib.contextmanager
def compile_together() -> Iterator[None]:
    """Launches inside compile their kernels and do not run them; all are compiled where this ends."""
    from triton import AsyncCompileMode

    hash_of_triton()
    kernels: list[Any] = []
    with log_slow_compilation(kernels), _CompilingPool() as pool:
        token = _begun.set(kernels)
        try:
            with AsyncCompileMode(pool, ignore_errors=True):  # which is left behind where it raises one
                yield
            for compilation in pool.begun:
                compilation.result()
        finally:
            _begun.reset(token)


def begin_to_compile(kernel: Any, arguments: tuple, options: dict[str, Any]) -> None:
    """Inside ``compile_together``: compile a kernel for these arguments, unless that was begun before."""
    kernels = _begun.get()
    assert kernels is not None
    kernels.append(kernel)
    hash_callees_first(kernel)
    hash_of_triton().result()
    kernel.warmup(*arguments, grid=(1, 1, 1), **options)


class _CompilingPool(ThreadPoolExecutor):
    """Threads that also load what they compile: for that Triton up to 3.6 compiles a part in C for every kernel."""

    def __init__(self) -> None:
        super().__init__(os.cpu_count())
        self.begun: list[Future] = []

    def submit(self, compile_it: Callable[[], Any]) -> Future:  # pyright: ignore[reportIncompatibleMethodOverride]
        device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
        self.begun.append(super().submit(_compile_and_load, compile_it, device))
        return self.begun[-1]


def _compile_and_load(compile_it: Callable[[], Any], device: int | None) -> Any:
    from triton import OutOfResources

    kernel = compile_it()
    if device is None:
        return kernel
    # There may be less shared memory than a kernel needs: then another one is launched.
    with torch.cuda.device(device), contextlib.suppress(OutOfResources):
        kernel[1, 1, 1]  # without launching it
    return kernel
