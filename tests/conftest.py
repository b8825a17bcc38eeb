"""Which tests this process can run; the others are not collected, and the summary says why."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
import torch

_ABSENT = {}
if not torch.cuda.is_available():
    _ABSENT["cuda"] = "there is no CUDA device"
if find_spec("triton") is None:
    _ABSENT["interpreted"] = "Triton is not installed"
elif os.environ.get("TRITON_INTERPRET") != "1":
    _ABSENT["interpreted"] = "TRITON_INTERPRET=1 is not set; make test runs them in a session of their own"

collect_ignore_glob = [f"{folder}/*" for folder in _ABSENT]


def pytest_configure() -> None:
    """Tests of interruptions need Ctrl-C, which a shell has jobs in the background ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """``torch.set_num_threads`` for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for folder, reason in _ABSENT.items():
        terminalreporter.write_line(f"not collected: tests/{folder}, {reason}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A session that asks for nothing but absent tests is no failure."""
    asked = {argument.split("::")[0].rstrip("/").rpartition("tests/")[2] for argument in session.config.args}
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and asked <= _ABSENT.keys():
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture
def fill_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and no file can be finished from then on: the data of new ones does not reach the disk."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    return lambda: monkeypatch.setattr(os, "fsync", full)
