"""First use: seconds until the first result of a process, without and with compiled kernels on disk."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from ..._timer import one_line

Result = dict[str, Any]

SIZES = {64: 3.0, 128: 5.0, 256: 8.0}
"""Goals for the first call, in seconds."""
LIMIT = 120.0
"""Seconds after which a process is ended."""
NOTHING = 0
"""In the place of a size: a kernel of one instruction, for what Triton itself takes."""


def measure(device: str, quick: bool, backend: str = "auto") -> Iterator[Result]:
    """For each size a process with an empty cache, then one that finds what the first compiled.

    One process at a time: each compiles on as many cores as it has kernels.
    """
    for n in (4,) if quick else SIZES:
        yield measure_size(n, device, backend)
    if device == "cuda":
        yield measure_size(NOTHING, device)


def measure_size(n: int, device: str, backend: str = "auto") -> Result:
    """Seconds of the first and second call and of the whole ``process``, with an ``empty`` and a ``filled`` cache."""
    case = f"1 x {n}" if n else "a kernel that does nothing"
    result: Result = {"case": case, "n": n, "goal_seconds": SIZES.get(n), "seconds": {}, "notes": {}}
    with TemporaryDirectory() as folder:
        for cache in ("empty", "filled"):
            try:
                result["seconds"][cache] = _first_call(n, device, backend, folder)
            except Exception as error:
                result["notes"][cache] = one_line(error)
    return result


def _first_call(n: int, device: str, backend: str, folder: str) -> dict[str, float]:
    command = [sys.executable, "-m", "matroot.bench.gpu.first_call", str(n), device, backend]
    environment = os.environ | {"TRITON_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(_paths())}
    start = time.perf_counter()
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    found = {"process": time.perf_counter() - start}
    if ended.returncode:
        raise RuntimeError(f"exit status {ended.returncode}: {ended.stderr[-150:]}")
    return {name: round(spent, 4) for name, spent in (found | json.loads(ended.stdout)).items()}


def _paths() -> Sequence[str]:
    """Where this process found the package and what it needs."""
    return [path for path in sys.path if path]
