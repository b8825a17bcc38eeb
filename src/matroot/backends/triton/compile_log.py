"""Slow compilations are no secret: each is said once, through ``logging``, by the logger "matroot"."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

SLOW = 2.0
"""Seconds from which on a compilation is worth a message; loading code from disk takes far less."""

_logger = logging.getLogger("matroot")


@contextmanager
def log_slow_compilation(kernels: Sequence[Any]) -> Iterator[None]:
    """Put it around the first calls of kernels: what takes long there is compiling them.

    Nothing is said of what fails, nor where Triton interprets.
    """
    start = time.perf_counter()
    yield
    spent = time.perf_counter() - start
    if spent < SLOW:
        return
    from triton import knobs

    if not knobs.runtime.interpret:
        text = "compiled %s in %.1f s; the code is kept in %s, and 'matroot warmup' compiles ahead"
        _logger.warning(text, ", ".join(dict.fromkeys(kernel.__name__ for kernel in kernels)), spent, knobs.cache.dir)
