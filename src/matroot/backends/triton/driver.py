"""Whether Triton can launch anything here.

For a process's first launch it compiles a part of its own in C, unless that is on disk: with a C compiler and Python's
headers, which images of containers often lack, and in a folder that it can write to.
"""

import logging
from functools import cache

from .compile_together import hash_of_triton

_logger = logging.getLogger("matroot")


@cache
def failure() -> str | None:
    """What keeps Triton from launching kernels, also said once by the logger "matroot"; or None."""
    try:
        from triton.runtime import driver

        hash_of_triton()  # begins meanwhile
        driver.active.get_current_target()
    except Exception as error:  # of a compiler, a loader, a file system
        why = str(error).partition("\n")[0] or type(error).__name__
        reason = f"Triton does not start, which takes a C compiler and Python's headers: {why}"
        _logger.warning("%s; ordinary operations replace kernels", reason)
        return reason
    return None
