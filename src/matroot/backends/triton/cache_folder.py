"""Where Triton keeps compiled code."""

import os
from importlib.util import find_spec


def keep_cache_folder() -> None:
    """Let Triton keep its folder in a process that uses ``torch.compile``, which gives it another one unless it is
    named: there would be nothing of what ``matroot warmup`` and other processes compiled. For programs.
    """
    if find_spec("triton") is not None:
        from triton import knobs

        os.environ.setdefault("TRITON_CACHE_DIR", knobs.cache.dir)
