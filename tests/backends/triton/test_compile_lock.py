"""Processes that compile ahead wait for each other where they need the same code."""

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")
compile_lock = pytest.importorskip("matroot.backends.triton.compile_lock")

KERNEL = SimpleNamespace(module="kernels", name="roots_kernel")
FIRST, SECOND = ({"key": key, "fn": KERNEL, "repr": ""} for key in ("first", "second"))


def start(lock, code):
    """A thread in the place of a process: locks of files opened apart exclude each other there too."""
    reached = threading.Event()
    thread = threading.Thread(target=lambda: (lock._before(**code), reached.set()), daemon=True)
    thread.start()
    return thread, reached


def test_the_same_code_is_compiled_by_one_at_a_time(tmp_path):
    own, other = (compile_lock.CompileLock(tmp_path) for _ in range(2))
    assert own._before(**FIRST) is False
    thread, reached = start(other, FIRST)
    assert not reached.wait(0.1)
    assert own._after(**FIRST) is False
    assert reached.wait(10)
    thread.join()
    other._after()


@pytest.mark.parametrize("code", [SECOND, FIRST | {"fn": SimpleNamespace(module="kernels", name="solve_kernel")}])
def test_other_code_is_not_waited_for(code, tmp_path):
    own, other = (compile_lock.CompileLock(tmp_path) for _ in range(2))
    own._before(**FIRST)
    thread, reached = start(other, code)
    assert reached.wait(10)
    thread.join()
    own._after()
    other._after()


def test_a_compilation_that_failed_keeps_no_lock(tmp_path):
    own, other = (compile_lock.CompileLock(tmp_path) for _ in range(2))
    own._before(**FIRST)
    own._before(**SECOND)  # without _after in between
    thread, reached = start(other, FIRST)
    assert reached.wait(10)
    thread.join()
    own._after()
    other._after()


def test_hooks_are_triton_s(tmp_path, monkeypatch):
    """The names exist in the Triton that is installed; what was found on disk was not compiled."""
    found = compile_lock.knobs
    assert hasattr(found.runtime, "jit_cache_hook")
    assert hasattr(found.runtime, "jit_post_compile_hook")
    assert hasattr(found.compilation, "listener")
    fake = SimpleNamespace(runtime=SimpleNamespace(), compilation=SimpleNamespace())
    monkeypatch.setattr(compile_lock, "knobs", fake)
    lock = compile_lock.CompileLock(tmp_path)
    lock.install()
    for name, hit in (("roots_kernel", False), ("solve_kernel", True)):
        fake.compilation.listener(src=SimpleNamespace(name=name), cache_hit=hit, times=None)
    assert lock.compiled == ["roots_kernel"]
    assert fake.runtime.jit_cache_hook == lock._before
    assert fake.runtime.jit_post_compile_hook == lock._after
