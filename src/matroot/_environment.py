"""Where and with which code results are measured."""

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import matroot

PACKAGE = Path(matroot.__file__).parent
NOT_MEASURED = ("_cli", "_page", "bench/report")
"""Folders of the package that no result depends on."""


def environment() -> dict[str, Any]:
    """The machine, the versions, the code and the date.

    ``source`` is the digest of the package's files, ``commit`` that of their repository; None where they are in none.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "matroot": matroot.__version__,
        "source": source_digest(),
        "commit": _commit(),
    }


@cache
def source_digest(package: Path = PACKAGE) -> str:
    """Sixteen digits that change with every file of the package that results depend on, compiled code included."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and not name.startswith(NOT_MEASURED):
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def device_name() -> str:
    """The GPU's name, or "cpu", as part of a file name."""
    return torch.cuda.get_device_name().replace(" ", "-").lower() if torch.cuda.is_available() else "cpu"


@cache
def _commit() -> str | None:
    """The commit of the package's repository, with "-dirty" after it where tracked files are changed."""
    # A repository may contain the package without knowing it: a virtual environment in a folder of another project.
    if _output("git", "-C", str(PACKAGE), "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return _output("git", "-C", str(PACKAGE), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40")


@cache
def _processor() -> str:
    lines = (_output("lscpu") or "").splitlines()
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("Model name"))
    return next(named, platform.processor() or platform.machine())


def _output(*command: str) -> str | None:
    """What a command prints; None where it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
