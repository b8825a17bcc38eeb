"""``matroot report``: result files as one page that works from disk, and their figures as files."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..._files import write_whole
from ..format import ResultError as ResultError
from .content import Content as Content
from .content import content_of as content_of
from .drawings import write_all
from .page import page as page
from .results import Results as Results
from .results import read as read


def write(paths: Sequence[Path], out: Path, figures: Path | None = None) -> int:
    """Write the page of all files that can be read, and print its path; the figures too if a folder is given.

    Returns the exit status: 0; 2 if a result file cannot be read, if the page or a figure cannot be written, or if the
    page would replace a result file.
    """
    if any(_same_file(path, out) for path in paths):
        return _fail(f"{out}: the page would replace a result file")
    results, status = [], 0
    for path in dict.fromkeys(paths):
        try:
            results.append(read(path))
        except ResultError as error:
            status = _fail(str(error))
    if not results:
        return _fail("no file to report")
    content = content_of(results)
    try:
        # JSON may contain lone surrogates, which UTF-8 cannot encode.
        _write_page(out, page(content).encode("utf-8", "replace"))
    except OSError as error:
        return _fail(f"{out}: {error.strerror or error}")
    print(out)
    if figures is not None:
        try:
            written = write_all(content.drawings, figures)
        except OSError as error:
            return _fail(f"{figures}: {error.strerror or error}")
        print(f"{figures}: {len(written)} files")
    return status


def _write_page(out: Path, data: bytes) -> None:
    """Replace a regular file or make one; what a link points to is replaced, not the link."""
    if out.exists() and not out.is_file():
        raise OSError("not a regular file")
    write_whole(Path(os.path.realpath(out)), data)


def _same_file(path: Path, out: Path) -> bool:
    try:
        return out.samefile(path)
    except OSError:
        return False


def _fail(message: str) -> int:
    print(f"matroot report: {message}", file=sys.stderr)
    return 2
