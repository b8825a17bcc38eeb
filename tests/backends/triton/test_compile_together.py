"""Kernels of a first call are compiled at once, and only then launched."""

import contextlib
import inspect
import threading
import time
from functools import cache

import pytest
import torch

from matroot.backends.triton import compile_log, launch
from matroot.backends.triton import compile_together as together
from matroot.backends.triton.compile_together import compile_together, compiling_only
from matroot.backends.triton.launch import LaunchSequence, launch_cached

pytest.importorskip("triton")


class Kernel:
    """Compiles, as Triton does inside AsyncCompileMode, in a thread of its pool."""

    arg_names = ("A", "SIZE")

    def __init__(self, name, together=None):
        self.__name__, self.together = name, together
        self.compiled, self.launched = [], []

    def warmup(self, *arguments, grid, **options):
        from triton.runtime._async_compile import active_mode

        def compile_it():
            if self.together is not None:
                self.together.wait(10)  # for the others
            self.compiled.append(options)
            return self

        submit = active_mode.get().submit
        callbacks = len(inspect.signature(submit).parameters) - 2  # from Triton 3.9 on one more
        submit(self, compile_it, *callbacks * [lambda kernel: None])

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.launched.append(grid) or self


def launch_both(kernels):
    A = torch.zeros(4)
    launch_cached(kernels[0], (3, 1, 1), (A,), {"SIZE": 8}, ("key", 4))
    LaunchSequence({"SIZE": 8}, A.device, ("key", 5)).launch(kernels[1], 2, (A,))


def test_they_are_compiled_at_once_and_not_launched(monkeypatch):
    monkeypatch.setattr(launch, "_compiled", {})
    together = threading.Barrier(2)  # either would wait for ever without the other
    kernels = [Kernel("roots_kernel", together), Kernel("solve_kernel", together)]
    with compile_together():
        assert compiling_only()
        launch_both(kernels)
    assert not compiling_only()
    assert [len(kernel.compiled) for kernel in kernels] == [1, 1]
    assert [kernel.launched for kernel in kernels] == [[], []]
    launch_both(kernels)
    assert [kernel.launched for kernel in kernels] == [[(3, 1, 1)], [(2, 1, 1)]]
    with compile_together():  # nothing is left to compile
        launch_both(kernels)
    assert [len(kernel.compiled) for kernel in kernels] == [1, 1]
    assert [len(kernel.launched) for kernel in kernels] == [1, 1]


def test_one_message_names_them(monkeypatch, caplog):
    monkeypatch.setattr(launch, "_compiled", {})
    monkeypatch.setattr(compile_log, "SLOW", 0.0)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with compile_together():
        launch_both([Kernel("roots_kernel"), Kernel("solve_kernel")])
    (record,) = caplog.records
    assert "compiled roots_kernel, solve_kernel in" in record.getMessage()


def test_a_kernel_that_does_not_compile_is_an_error(monkeypatch):
    monkeypatch.setattr(launch, "_compiled", {})

    class Broken(threading.Barrier):
        def wait(self, timeout=None):
            raise RuntimeError("out of registers")

    for _ in range(2):  # the first one leaves nothing behind
        with pytest.raises(RuntimeError, match="out of registers"), compile_together():
            launch_both([Kernel("roots_kernel", Broken(1)), Kernel("solve_kernel")])
        assert not compiling_only()


@pytest.fixture
def cuda(monkeypatch):
    """As where CUDA is in use; the devices that threads take."""
    taken = []
    monkeypatch.setattr(launch, "_compiled", {})
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext(taken.append(device)))
    return taken


class Loadable(Kernel):
    """Says in which threads it is loaded, which needs the compiled code."""

    def __init__(self, name, error=None):
        super().__init__(name)
        self.error, self.loaded = error, []

    def __getitem__(self, grid):
        self.loaded.append((len(self.compiled), threading.current_thread()))
        if self.error is not None:
            raise self.error
        return super().__getitem__(grid)


def test_threads_load_what_they_compile(cuda):
    kernels = [Loadable("roots_kernel"), Loadable("solve_kernel")]
    with compile_together():
        launch_both(kernels)
    for kernel in kernels:
        ((compiled, thread),) = kernel.loaded
        assert compiled == 1
        assert thread is not threading.main_thread()
    assert cuda == [3, 3]  # not the first device, which is that of a new thread


def test_a_kernel_for_a_larger_gpu_is_not_loaded(cuda):
    from triton import OutOfResources

    with compile_together():
        launch_both([Loadable("roots_kernel", OutOfResources(2, 1, "shared memory")), Loadable("solve_kernel")])
    with pytest.raises(RuntimeError, match="no driver"), compile_together():
        launch_both([Loadable("roots_kernel", RuntimeError("no driver")), Loadable("solve_kernel")])


def test_the_hash_of_triton_comes_first(monkeypatch):
    """Several threads would each compute it."""
    monkeypatch.setattr(launch, "_compiled", {})
    events = []

    def triton_key():
        time.sleep(0.1)
        events.append(("hash", threading.current_thread() is threading.main_thread()))

    class Timed(Kernel):
        def warmup(self, *arguments, grid, **options):
            events.append(("compile", True))

    monkeypatch.setattr("triton.runtime.cache.triton_key", triton_key)
    monkeypatch.setattr(together, "hash_of_triton", cache(together.hash_of_triton.__wrapped__))
    with compile_together():
        launch_both([Timed("roots_kernel"), Timed("solve_kernel")])
    assert events == [("hash", False), ("compile", True), ("compile", True)]
