"""Runs in processes of their own: how they are stopped, and what they leave."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from matroot.train.compare import execution
from matroot.train.compare.execution import run_in_processes
from matroot.train.compare.plan import RunOptions, plan
from matroot.train.compare.worker import from_job, to_job

from . import stand_in_run
from .examples import RECIPE

WORKER = (sys.executable, stand_in_run.__file__)
SLOW = RunOptions(data=Path("epoch=30"))


class Record:
    """What an observer is told; ``on_start`` is called when a run starts."""

    def __init__(self, on_start=lambda: None):
        self.events, self.on_start = [], on_start

    def started(self, run):
        self.events.append(("started", run.name))
        self.on_start()

    def ended(self, run, failure):
        self.events.append(("ended", run.name, failure))


@pytest.fixture
def runs(tmp_path):
    return plan(RECIPE, ("default", "ns", "mpa-lya"), (0,), tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(execution, "POLL", 0.01)


def test_a_job_is_the_run_it_was_made_from(runs, tmp_path):
    for options in (RunOptions(), RunOptions(tmp_path, "cuda:1", 3, False)):
        assert from_job(to_job(runs[0], options)) == (runs[0], options)


def test_no_more_at_once_than_asked_for(runs):
    record = Record()
    run_in_processes(runs, RunOptions(data=Path("epoch=0.01")), record, jobs=2, command=WORKER)
    active, most = 0, 0
    for event in record.events:
        active += 1 if event[0] == "started" else -1
        most = max(most, active)
    assert most == 2
    assert sorted(event[1] for event in record.events if event == ("ended", event[1], None)) == sorted(
        run.name for run in runs
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_here_stops_them(runs, number):
    """Both signals; the children, which would take a minute, are gone when it is passed on."""
    record = Record()

    def interrupt_at_second():
        if len(record.events) == 2:
            os.kill(os.getpid(), number)

    record.on_start = interrupt_at_second
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(runs, SLOW, record, jobs=2, command=WORKER)
    assert record.events == [("started", "default-seed0"), ("started", "ns-seed0"), ("ended", "default-seed0", None)]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_process_that_does_not_stop_is_killed(runs, monkeypatch):
    monkeypatch.setattr(execution, "PATIENCE", 0.1)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    record = Record()
    run_in_processes(
        runs[:1],
        SLOW,
        record,
        jobs=1,
        deadline=execution.time.monotonic() + 0.5,
        command=(sys.executable, "-c", stubborn),
    )
    assert record.events[-1] == ("ended", "default-seed0", None)


def test_why_a_process_ended_is_told(runs):
    for code, message in (
        ("import sys; sys.exit('what  is\\n wrong')", r"exit status 1: wrong; see .*default-seed0.log"),
        ("import sys; print('what  is\\n wrong', file=sys.stderr); sys.exit(2)", r"^what is wrong$"),
        ("import sys; print(1000 * 'log ', 'what is wrong', file=sys.stderr); sys.exit(2)", r"log what is wrong$"),
        ("import os; os.kill(os.getpid(), 9)", r"exit status -9: it printed nothing"),
    ):
        record = Record()
        run_in_processes(runs[:1], SLOW, record, jobs=1, command=(sys.executable, "-c", code))
        assert re.search(message, record.events[-1][2]), record.events


def test_a_worker_stops_when_nobody_waits_for_it():
    """However the process that started it ended: the other end of its standard input is closed then."""
    code = "import time; from matroot.train.compare.worker import stop_with_parent; stop_with_parent(); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == -signal.SIGTERM
