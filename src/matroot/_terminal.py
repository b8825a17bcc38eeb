"""How a program ends: a status for Ctrl-C and for output that cannot be written, never a traceback."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper
from typing import Any


class CommandError(Exception):
    """What is wrong with a command or with the files it names, for the person who wrote it; exit status 2."""


def exit_status(program: Callable[[], int]) -> int:
    """Run a program and return its exit status: 1 where standard output fails, 2 for a CommandError, 130 after Ctrl-C.

    Characters that the encoding of the terminal lacks are written as escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    output: Any = _Output(sys.stdout)
    try:
        with redirect_stdout(output):
            try:
                return program()
            finally:
                output.flush()
    except _OutputError as failure:
        # Python flushes the stream once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(failure.error, BrokenPipeError):
            print(f"cannot write to standard output: {failure.error.strerror}", file=sys.stderr)
        return 1
    except CommandError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


@contextmanager
def importing() -> Iterator[None]:
    """Ctrl-C waits for the end of the imports within: one that is cut short may end in any error, or in an abort."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # who has a handler knows what to do
        return
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if interrupts:
            raise KeyboardInterrupt


class _OutputError(Exception):
    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class _Output:
    """Standard output whose errors are told from those of other files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _OutputError(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise _OutputError(error) from error
