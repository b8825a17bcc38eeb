"""All kernels that a first call needs are compiled at once, in threads, instead of one after another."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .compile_log import log_slow_compilation
from .source_hash import hash_callees_first

_kernels: ContextVar[list[Any] | None] = ContextVar("kernels that are compiled together", default=None)


def compiling_only() -> bool:
    """Whether launches are to compile their kernels and not to run them."""
    return _kernels.get() is not None


@contextmanager
def compile_together() -> Iterator[None]:
    """Launches inside compile their kernels and do not run them; all are compiled where this ends."""
    from triton import AsyncCompileMode

    kernels: list[Any] = []
    token = _kernels.set(kernels)
    try:
        with log_slow_compilation(kernels), _CompilingPool(os.cpu_count()) as pool:
            with AsyncCompileMode(pool, ignore_errors=True):  # which is left behind where it raises one
                yield
            for compilation in pool.begun:
                compilation.result()
    finally:
        _kernels.reset(token)


def begin_to_compile(kernel: Any, arguments: tuple, options: dict[str, Any]) -> None:
    """Inside ``compile_together``: compile a kernel for these arguments, unless that was begun before."""
    kernels = _kernels.get()
    assert kernels is not None
    kernels.append(kernel)
    hash_callees_first(kernel)
    kernel.warmup(*arguments, grid=(1, 1, 1), **options)


class _CompilingPool(ThreadPoolExecutor):
    """Threads that remember what they were given to compile."""

    def __init__(self, threads: int | None) -> None:
        super().__init__(threads)
        self.begun: list[Future] = []

    def submit(self, compile_it: Callable[[], Any]) -> Future:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.begun.append(super().submit(compile_it))
        return self.begun[-1]
