"""One training at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .._terminal import CommandError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only process that is here with this folder, which is made; CommandError if another one is.

    The system unlocks the folder of a process that ends, however that is. Where files cannot be locked, nothing is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot write {folder}: {error.strerror}") from error
    file = _lock(folder)
    try:
        yield
    finally:
        if file is not None:
            file.close()


def _lock(folder: Path) -> BinaryIO | None:
    """The file whose lock this process has; None where there are none, or no such file can be made."""
    if fcntl is None:
        return None
    try:
        # It stays there: one that is removed could be locked by a process that had opened it before.
        file = (folder / NAME).open("ab")
    except OSError:
        return None
    try:
        # Of this process alone; data workers would inherit a lock of flock, and keep it where this process is killed.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError | PermissionError):
            raise CommandError(f"another process trains in {folder}; wait for it, or name another --out") from None
        return None
    return file
