"""Slow compilations are said once."""

import logging
from types import SimpleNamespace

import pytest

from matroot.backends.triton import compile_log

KERNELS = [SimpleNamespace(__name__=name) for name in ("roots_kernel", "solve_kernel", "roots_kernel")]


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass between two looks at the clock."""
    times = SimpleNamespace(now=0.0, step=0.0)

    def look():
        times.now += times.step
        return times.now

    monkeypatch.setattr(compile_log.time, "perf_counter", look)
    return times


@pytest.mark.parametrize(("spent", "messages"), [(1.9, 0), (2.0, 1), (18.04, 1)])
def test_what_takes_seconds_is_said(spent, messages, clock, caplog, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", "here")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    clock.step = spent
    with caplog.at_level(logging.WARNING, logger="matroot"), compile_log.log_slow_compilation(KERNELS):
        pass
    assert len(caplog.records) == messages
    for record in caplog.records:
        assert record.name == "matroot"
        assert f"roots_kernel, solve_kernel in {spent:.1f} s" in record.getMessage()
        assert "kept in here" in record.getMessage()


def test_the_interpreter_compiles_nothing(clock, caplog, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    clock.step = 10.0
    with compile_log.log_slow_compilation(KERNELS):
        pass
    assert not caplog.records


def test_a_compilation_that_fails_is_no_message(clock, caplog):
    clock.step = 10.0
    with pytest.raises(RuntimeError), compile_log.log_slow_compilation(KERNELS):
        raise RuntimeError
    assert not caplog.records
