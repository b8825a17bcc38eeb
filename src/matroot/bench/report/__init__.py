"""``matroot report``: result files of ``matroot bench`` as one page that works from disk."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ..files import write_whole
from ..format import ResultError as ResultError
from .page import page as page
from .results import Results as Results
from .results import read as read


def write(paths: Sequence[Path], out: Path) -> int:
    """Write the page of all files that can be read; returns the exit status, 1 when a file or the page failed."""
    found, status = [], 0
    for path in dict.fromkeys(paths):
        if _same_file(path, out):
            print(f"matroot report: {out}: the page would replace a result file", file=sys.stderr)
            return 2
        try:
            found.append(read(path))
        except ResultError as error:
            print(f"matroot report: {error}", file=sys.stderr)
            status = 1
    if not found:
        print("matroot report: no file to report", file=sys.stderr)
        return 1
    try:
        # JSON may spell halves of characters, which UTF-8 has no bytes for.
        write_whole(out, page(found).encode("utf-8", "replace"))
    except OSError as error:
        print(f"matroot report: {out}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(out)
    return status


def _same_file(path: Path, out: Path) -> bool:
    try:
        return out.samefile(path)
    except OSError:
        return False
