"""One training at a time in a folder."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ._files import remove_partial
from ._terminal import CommandError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

NAME = ".lock"


@contextmanager
def locked(folder: Path, *names: str) -> Iterator[None]:
    """Be the only process that is here with this folder, which is made; CommandError if another one is.

    What killed processes left of files of these names, or patterns, is removed. The system unlocks the folder of a
    process that ends, however that is. Where files cannot be locked, nothing is, and nothing removed. A folder that was
    made here and has got no files is removed again.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot write {folder}: {error.strerror}") from error
    file = _lock(folder)
    try:
        if file is not None:
            remove_partial(folder, *names)
        yield
    finally:
        if file is not None:
            if is_new:
                with suppress(OSError):
                    if [path.name for path in folder.iterdir()] == [NAME]:
                        shutil.rmtree(folder)
            file.close()


def _lock(folder: Path) -> BinaryIO | None:
    """The file whose lock this process has; None where there are none, or no such file can be made."""
    if fcntl is None:
        return None
    try:
        # It stays there with a run: one that is removed could be locked by a process that had opened it before.
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
