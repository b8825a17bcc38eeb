"""Ctrl-C and SIGTERM: both stop a run, and neither in the middle of its files."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


class Interruption:
    """While it is entered, SIGINT and SIGTERM raise KeyboardInterrupt; in a thread of its own nothing changes."""

    def __init__(self) -> None:
        self._deferring = False
        self._pending = False
        self._before = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """What is inside is finished first, unless it fails by itself."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._pending:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._pending = True
        if not self._deferring:
            raise KeyboardInterrupt
