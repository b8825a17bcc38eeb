"""Several processes that compile ahead: none of them compiles what another one does at the moment.

Triton looks for code on disk first. So whoever waits for the process that compiles finds it there. For processes of
their own only: Triton's hooks are global. Import only where Triton is.
"""

import fcntl
import hashlib
from pathlib import Path
from typing import Any

from triton import knobs


class CompileLock:
    """Hooks of Triton that hold a lock of the code to be compiled, a file in ``folder``.

    ``compiled`` are the names of the kernels that this process compiled rather than found on disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiled: list[str] = []
        self._held: Any = None

    def install(self) -> None:
        """From now on, for all kernels of this process."""
        knobs.runtime.jit_cache_hook = self._before
        knobs.runtime.jit_post_compile_hook = self._after
        knobs.compilation.listener = self._listen

    def _before(self, *, key: Any, fn: Any, **_: object) -> bool:
        self._release()  # that of a compilation that failed
        name = hashlib.sha256(f"{fn.module}.{fn.name} {key}".encode()).hexdigest()
        self._held = open(self.folder / name, "w")  # noqa: SIM115 - closed by _release
        fcntl.flock(self._held, fcntl.LOCK_EX)
        return False  # Triton is to compile it

    def _after(self, **_: object) -> bool:
        self._release()
        return False

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    def _listen(self, *, src: Any, cache_hit: bool, **_: object) -> None:
        if not cache_hit:
            self.compiled.append(src.name)
