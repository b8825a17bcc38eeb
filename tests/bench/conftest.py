"""What the tests of the benchmarks share."""

import pytest
import torch


@pytest.fixture(scope="module")
def one_thread():
    """On matrices this small, threads that wait for each other take longer than the arithmetic."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def clock(monkeypatch):
    """Time passes only in calls, which are given as seconds."""
    now = [0.0]

    class Work:
        def __init__(self, *takes):
            self.takes, self.calls = list(takes), 0

        def __call__(self):
            now[0] += self.takes[min(self.calls, len(self.takes) - 1)]
            self.calls += 1

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return Work
