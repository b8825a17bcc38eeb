"""How a program ends: a status for Ctrl-C and for output that cannot be written, never a traceback."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from .format import ResultError


def exit_status(program: Callable[[], int]) -> int:
    """Run a program and return its exit status: 1 where standard output fails, 2 for a result file, 130 after Ctrl-C.

    Characters that the encoding of the terminal lacks are written as escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return program()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not _output_fails():
            raise
        if not isinstance(error, BrokenPipeError):
            print(f"cannot write to standard output: {error.strerror or error}", file=sys.stderr)
        return 1
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _output_fails() -> bool:
    """Whether standard output takes nothing more; it is closed then, or Python would try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
