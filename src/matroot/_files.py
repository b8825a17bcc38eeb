"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def write_whole(path: Path, data: bytes) -> None:
    """Write a file as :func:`whole` does; OSError if it fails, and the earlier content stays."""
    with whole(path) as file:
        file.write(data)


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A temporary file beside ``path``, which takes that name at the end; if it fails the earlier content stays.

    The data is on the disk before the name is: a power failure leaves one content or the other. Processes that write
    the same file have a temporary one each; the last to end is the one that stays.
    """
    partial = path.with_name(f"{path.name}.{token_hex(4)}.partial")
    try:
        with open(partial, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def remove_partial(folder: Path, *names: str) -> None:
    """Remove what killed processes left of files of these names, or patterns; only while nobody writes them.

    What cannot be removed stays.
    """
    for name in names:
        for partial in folder.glob(f"{name}.*partial"):
            with suppress(OSError):
                partial.unlink()
