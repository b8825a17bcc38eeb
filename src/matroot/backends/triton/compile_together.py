"""All kernels that a first call needs are compiled at once, in threads, instead of one after another."""

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch

from .compile_log import log_slow_compilation
from .source_hash import hash_callees_first


class _Compilations(NamedTuple):
    """Kernels that were begun, and the hash of Triton that all need: of some hundred MB, which takes a while."""

    kernels: list[Any]
    triton_key: Future


_compilations: ContextVar[_Compilations | None] = ContextVar("kernels that are compiled together", default=None)


def compiling_only() -> bool:
    """Whether launches are to compile their kernels and not to run them."""
    return _compilations.get() is not None


@contextlib.contextmanager
def compile_together() -> Iterator[None]:
    """Launches inside compile their kernels and do not run them; all are compiled where this ends."""
    from triton import AsyncCompileMode
    from triton.runtime.cache import triton_key

    kernels: list[Any] = []
    with log_slow_compilation(kernels), _CompilingPool() as pool, ThreadPoolExecutor(1) as hashing:
        token = _compilations.set(_Compilations(kernels, hashing.submit(triton_key)))
        try:
            with AsyncCompileMode(pool, ignore_errors=True):  # which is left behind where it raises one
                yield
            for compilation in pool.begun:
                compilation.result()
        finally:
            _compilations.reset(token)


def begin_to_compile(kernel: Any, arguments: tuple, options: dict[str, Any]) -> None:
    """Inside ``compile_together``: compile a kernel for these arguments, unless that was begun before."""
    compilations = _compilations.get()
    assert compilations is not None
    compilations.kernels.append(kernel)
    hash_callees_first(kernel)
    if arguments[0].is_cuda:
        from triton.runtime import driver

        driver.active.get_current_target()  # the first time it compiles a part of Triton in C
    compilations.triton_key.result()
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
